package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"convls/client"
	"convls/protocol"
	"convls/test/editor"
)

var seed = flag.Uint64("crash.seed", 0, "the seed of the random choices; 0 for the usual ones")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(editor.Main(m))
}

const (
	// lanes are stores that are killed side by side.
	lanes = 2
	// copyEvery is how many kills lie between two checks of the store as the kill
	// left it.
	copyEvery = 25
	// most is how many events and deltas a server sends at most before it is killed,
	// and jitter how long after the last of them, so that kills fall between them too.
	most   = 160
	jitter = 4 * time.Millisecond
)

// TestKills kills servers while three sessions stream and change (faults 58, 63,
// 64, 66, 68, 80).
func TestKills(t *testing.T) {
	kills := 15
	if editor.Long() {
		kills = 110
	}
	first := uint64(1)
	if *seed != 0 {
		first = *seed
	}
	for lane := range uint64(lanes) {
		t.Run(fmt.Sprint(first+lane), func(t *testing.T) {
			t.Parallel()
			k := &killer{t: t, home: editor.NewHome(t), Rand: rand.New(rand.NewPCG(first+lane, 2))}
			k.run(kills)
		})
	}
}

// killer is a store, and what is known of it from the outside.
type killer struct {
	t    testing.TB
	home *editor.Home
	*rand.Rand
	ed       *editor.Editor
	sessions []*session
	// What the kills met: requests sent again, and done before that; replies cut
	// short, with text; bytes of them that had to be there; changes acknowledged;
	// sessions given up because their events had become too many to be compared.
	resent, done, interrupted, partial, proven, acknowledged, outrun int

	mu sync.Mutex
	// durable is how much text of each reply must be there: what had been seen when a
	// change was sent that was then acknowledged.
	durable map[string]int
}

func (k *killer) run(kills int) {
	k.durable = map[string]int{}
	k.start()
	for range 3 {
		k.sessions = append(k.sessions, newSession(k))
	}
	for i := range kills {
		k.live()
		if i%copyEvery == copyEvery-1 {
			k.checkCopy()
		}
		k.start()
		for j, s := range k.sessions {
			if !s.verify() {
				k.outrun++
				k.sessions[j] = newSession(k)
			}
		}
		for j, s := range k.sessions {
			s.again()
			s.goesOn()
			if len(s.events) > replayed/2 {
				k.sessions[j] = newSession(k)
			}
		}
	}
	k.ed.Leave(k.t)
	k.home.Check(k.t)
	k.t.Logf("%d kills; %d changes acknowledged; %d were sent again, %d of them had happened; %d replies interrupted, %d with text, %d bytes of it proven durable; %d sessions outran their replay",
		kills, k.acknowledged, k.resent, k.done, k.interrupted, k.partial, k.proven, k.outrun)
	if k.acknowledged == 0 || k.done == 0 || k.proven == 0 || k.outrun > kills/10 {
		k.t.Error("the kills met nothing: they prove nothing")
	}
}

func (k *killer) start() {
	k.ed = k.home.Start(k.t, editor.Options{Client: client.Options{Name: "crash"}})
}

// live lets the sessions work until the server is killed at a random instant.
func (k *killer) live() {
	var wg sync.WaitGroup
	before := 0
	k.ed.Look(func(s *editor.Seen) { before = s.Messages })
	for _, s := range k.sessions {
		own := rand.New(rand.NewPCG(k.Uint64(), 3))
		wg.Go(func() { s.work(own) })
	}
	target := before + k.IntN(most)
	k.ed.Await("work", func(s *editor.Seen) bool { return s.Messages >= target })
	instant := time.NewTimer(time.Duration(k.Int64N(int64(jitter))))
	defer instant.Stop()
	<-instant.C
	k.ed.Kill(k.t)
	wg.Wait()
	for _, s := range k.sessions {
		s.remember()
	}
}

// checkCopy checks a copy of the store as the kill left it.
func (k *killer) checkCopy() {
	dir := filepath.Join(k.t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(k.home.Data)); err != nil {
		k.t.Fatal(err)
	}
	editor.CheckStore(k.t, dir)
}

// seen returns how much text of each reply the editor has seen.
func (k *killer) seen() map[string]int {
	texts := map[string]int{}
	k.ed.Look(func(s *editor.Seen) {
		for id, parts := range s.Texts {
			for _, p := range parts {
				if p.Kind == protocol.DeltaText && p.From == 0 {
					texts[id] += len(p.Text)
				}
			}
		}
	})
	return texts
}

// acknowledge notes that a change is done which was sent when this much had been
// seen.
func (k *killer) acknowledge(texts map[string]int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.acknowledged++
	for id, n := range texts {
		k.durable[id] = max(k.durable[id], n)
	}
}
