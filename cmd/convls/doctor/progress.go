package doctor

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
)

// progress shows how a check goes on: on a terminal in one line that goes away at
// the end, elsewhere by saying once what is done. It is for one goroutine, and
// nobody depends on it, so writing may fail.
type progress struct {
	out      io.Writer
	terminal bool
	shown    time.Time
}

// often is how often a line on a terminal changes.
const often = 100 * time.Millisecond

// tell begins to show what is being done; without a place to show it, nothing is.
func (x *examination) tell(what string) *progress {
	p := &progress{out: x.progress}
	if p.out == nil {
		p.out = io.Discard
	}
	if f, ok := p.out.(*os.File); ok {
		p.terminal = isatty.IsTerminal(f.Fd())
	}
	end := "\n"
	if p.terminal {
		end = ""
	}
	p.show(what + end)
	return p
}

// reached tells how many sessions of all have been read.
func (p *progress) reached(sessions, all int) {
	if !p.terminal || time.Since(p.shown) < often && sessions < all {
		return
	}
	p.shown = time.Now()
	p.show(fmt.Sprintf("\r\x1b[K%d of %d sessions read", sessions, all))
}

func (p *progress) end() {
	if p.terminal {
		p.show("\r\x1b[K")
	}
}

func (p *progress) show(text string) { _, _ = io.WriteString(p.out, text) }
