package model

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetry(t *testing.T) {
	half := func() float64 { return 0.5 }
	limited := func(after time.Duration) error { return &Error{Class: ClassRateLimit, RetryAfter: after} }
	for _, c := range []struct {
		name    string
		policy  RetryPolicy
		errs    []error // of the attempts; nil is success
		emitted bool
		waits   []time.Duration
		class   Class // of the result
	}{
		{name: "success", policy: RetryPolicy{Max: 3}, errs: []error{nil}},
		{name: "grows", policy: RetryPolicy{Max: 3}, errs: []error{limited(0), limited(0), limited(0), limited(0)},
			waits: []time.Duration{750 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second}, class: ClassRateLimit},
		{name: "succeeds", policy: RetryPolicy{Max: 3}, errs: []error{&Error{Class: ClassUnavailable}, nil}, waits: []time.Duration{750 * time.Millisecond}},
		{name: "capped", policy: RetryPolicy{Max: 3, Base: 10 * time.Second, Cap: 12 * time.Second}, errs: []error{limited(0), limited(0), nil},
			waits: []time.Duration{7500 * time.Millisecond, 9 * time.Second}},
		{name: "as asked", policy: RetryPolicy{Max: 1}, errs: []error{limited(20 * time.Second), nil}, waits: []time.Duration{20500 * time.Millisecond}},
		{name: "asked for less than our own wait", policy: RetryPolicy{Max: 1}, errs: []error{limited(time.Millisecond), nil}, waits: []time.Duration{750 * time.Millisecond}},
		{name: "asked for too much", policy: RetryPolicy{Max: 3}, errs: []error{limited(time.Hour)}, class: ClassRateLimit},
		{name: "no retries", errs: []error{limited(0)}, class: ClassRateLimit},
		{name: "after something was shown", policy: RetryPolicy{Max: 3}, errs: []error{&Error{Class: ClassStreamCut}}, emitted: true, class: ClassStreamCut},
		{name: "a cut before anything was shown", policy: RetryPolicy{Max: 3}, errs: []error{&Error{Class: ClassStreamCut}, nil}, waits: []time.Duration{750 * time.Millisecond}},
		// Faults 24, 26: never in a loop.
		{name: "overflow", policy: RetryPolicy{Max: 3}, errs: []error{&Error{Class: ClassContextOverflow}}, class: ClassContextOverflow},
		{name: "body too large", policy: RetryPolicy{Max: 3}, errs: []error{&Error{Class: ClassBodyTooLarge}}, class: ClassBodyTooLarge},
		{name: "quota", policy: RetryPolicy{Max: 3}, errs: []error{&Error{Class: ClassQuota}}, class: ClassQuota},
		{name: "auth", policy: RetryPolicy{Max: 3}, errs: []error{&Error{Class: ClassAuth}}, class: ClassAuth},
		{name: "refused", policy: RetryPolicy{Max: 3}, errs: []error{&Error{Class: ClassRefused}}, class: ClassRefused},
		{name: "invalid", policy: RetryPolicy{Max: 3}, errs: []error{&Error{Class: ClassInvalid}}, class: ClassInvalid},
		{name: "cancelled", policy: RetryPolicy{Max: 3}, errs: []error{&Error{Class: ClassCancelled}}, class: ClassCancelled},
		{name: "not ours", policy: RetryPolicy{Max: 3}, errs: []error{errors.New("disk full")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.policy.Jitter = half
				var waits []time.Duration
				c.policy.Wait = func(w RetryWait) {
					waits = append(waits, w.After)
					if w.Attempt != len(waits)+1 || w.Err == nil {
						t.Errorf("told %+v", w)
					}
				}
				begun := time.Now()
				calls := 0
				err := Retry(t.Context(), c.policy, func(attempt int) (bool, error) {
					calls++
					if attempt != calls {
						t.Errorf("attempt %d is told %d", calls, attempt)
					}
					return c.emitted, c.errs[calls-1]
				})
				if calls != len(c.errs) || len(waits) != len(c.waits) {
					t.Fatalf("%d calls, waits %v", calls, waits)
				}
				var sum time.Duration
				for i, w := range c.waits {
					if waits[i] != w {
						t.Errorf("wait %d is %s, want %s", i, waits[i], w)
					}
					sum += w
				}
				if time.Since(begun) != sum {
					t.Errorf("took %s", time.Since(begun))
				}
				if !errors.Is(err, c.errs[len(c.errs)-1]) || ClassOf(err) != c.class {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
}

func TestRetryJitter(t *testing.T) {
	for attempt := 1; attempt < 100; attempt++ {
		wait, ok := RetryPolicy{}.delay(attempt, 0)
		if !ok || wait < 500*time.Millisecond || wait > 30*time.Second {
			t.Errorf("attempt %d waits %s", attempt, wait)
		}
	}
}

func TestRetryCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		time.AfterFunc(10*time.Millisecond, cancel)
		err := Retry(ctx, RetryPolicy{Max: 3}, func(int) (bool, error) { return false, &Error{Class: ClassRateLimit, RetryAfter: 30 * time.Second} })
		if ClassOf(err) != ClassCancelled || !errors.Is(err, context.Canceled) || time.Since(begun) != 10*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}
