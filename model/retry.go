package model

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// RetryPolicy says how often and how patiently a call is tried again. Zero
// members mean the default that their comment gives.
type RetryPolicy struct {
	// Max is how many tries may follow the first; 0 means none.
	Max int
	// Base is the wait before the first retry, which doubles each time. Default: 1 s.
	Base time.Duration
	// Cap is the longest of these waits. Default: 30 s.
	Cap time.Duration
	// MaxRetryAfter is the longest wait that a provider may ask for; if it asks for
	// more, the call fails at once, with the wait in the error. Default: 60 s.
	MaxRetryAfter time.Duration
	// Jitter returns a number in [0, 1) by which waits are spread. Default: random.
	Jitter func() float64
	// Wait, if set, is told of each wait before it begins.
	Wait func(RetryWait)
}

// RetryWait is a wait before a retry.
type RetryWait struct {
	// Attempt is the try that will follow, from 2.
	Attempt int
	After   time.Duration
	Err     error
}

// Retry calls try until it succeeds, fails for good, or policy.Max retries are
// used up, and returns its last error. try is told which attempt it is, from 1,
// and reports whether it emitted anything: what a person has seen begin is never
// begun again. Of the rest, rate limits, unavailable providers and cut streams
// are tried again. A wait is at least what the provider asked for. When ctx
// ends during a wait, the error is of class cancelled.
func Retry(ctx context.Context, policy RetryPolicy, try func(attempt int) (emitted bool, err error)) error {
	for attempt := 1; ; attempt++ {
		emitted, err := try(attempt)
		if err == nil || emitted || attempt > policy.Max {
			return err
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || !e.Retryable() || ctx.Err() != nil {
			return err
		}
		after, ok := policy.delay(attempt, e.RetryAfter)
		if !ok {
			return err
		}
		if policy.Wait != nil {
			policy.Wait(RetryWait{Attempt: attempt + 1, After: after, Err: err})
		}
		timer := time.NewTimer(after)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return &Error{
				Class: ClassCancelled, Provider: e.Provider, Model: e.Model,
				Message: "cancelled while waiting to retry: " + e.Message, Cause: context.Cause(ctx),
			}
		}
	}
}

// delay returns the wait after a failed attempt: exponential, spread over its
// upper half, and not shorter than asked. ok is false if too much was asked.
func (p RetryPolicy) delay(attempt int, asked time.Duration) (after time.Duration, ok bool) {
	base, limit, most, jitter := p.Base, p.Cap, p.MaxRetryAfter, p.Jitter
	if base <= 0 {
		base = time.Second
	}
	if limit <= 0 {
		limit = 30 * time.Second
	}
	if most <= 0 {
		most = time.Minute
	}
	if jitter == nil {
		jitter = rand.Float64
	}
	if asked > most {
		return 0, false
	}
	wait := limit
	if shift := attempt - 1; shift < 32 && base <= limit>>shift {
		wait = base << shift
	}
	wait = wait/2 + time.Duration(jitter()*float64(wait/2))
	if wait < asked {
		// Many clients were told the same moment; come a little after it.
		wait = asked + time.Duration(jitter()*float64(min(asked/10, time.Second)))
	}
	return wait, true
}
