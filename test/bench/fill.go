package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"convls/protocol"
	"convls/store"
)

// Options say what [Fill] writes. The zero value of each has a default.
type Options struct {
	// Text is how long a message is on average, in bytes: 400. Lengths vary by half,
	// and two runs with the same options write the same text.
	Text int
	// ForkEvery begins a branch a few nodes back, once in so many nodes: never.
	ForkEvery int
	// ToolEvery gives one in so many replies a tool call with its result: never. Tool
	// nodes count as nodes.
	ToolEvery int
	// Batch is how many nodes one mutation writes: 1,000.
	Batch int
	// Tokenizer is what says to have counted the tokens: "estimate".
	Tokenizer string
	// Model is what replies say that they were made by: "offline".
	Model string
}

// Fill appends n nodes to the conversation at HEAD: messages and replies in turn,
// sealed, with usage and token counts. HEAD ends on the last reply. It returns the
// nodes that it wrote, oldest first, off the chain ones left out.
func Fill(ctx context.Context, sess *store.Session, n int, o Options) ([]store.Skeleton, error) {
	if o.Text == 0 {
		o.Text = 400
	}
	if o.Batch == 0 {
		o.Batch = 1_000
	}
	if o.Tokenizer == "" {
		o.Tokenizer = "estimate"
	}
	if o.Model == "" {
		o.Model = "offline"
	}
	f := &filler{Options: o, rng: rand.New(rand.NewPCG(1, uint64(n))), nodes: make([]store.Skeleton, 0, n)}
	for written := 0; written < n; {
		batch := min(o.Batch, n-written)
		out, err := store.Apply(ctx, sess, store.Request{Unreserved: true, Cause: "fill"}, func(tx *store.Tx) (int, error) {
			return f.write(tx, batch)
		})
		if err != nil {
			return f.nodes, fmt.Errorf("fill a session: %d of %d nodes: %w", written, n, err)
		}
		written += out.Result
	}
	return f.nodes, nil
}

type filler struct {
	Options
	rng   *rand.Rand
	nodes []store.Skeleton
}

// write appends at least count nodes, and returns how many.
func (f *filler) write(tx *store.Tx, count int) (int, error) {
	for done := 0; done < count; done++ {
		i := len(f.nodes)
		if f.ForkEvery > 0 && i > 0 && i%f.ForkEvery == 0 {
			back := f.nodes[max(0, i-2*(1+f.rng.IntN(5)))]
			if err := tx.SetHead(back, ""); err != nil {
				return done, err
			}
		}
		at, err := tx.Skeleton(tx.State.Head)
		if err != nil {
			return done, err
		}
		text := f.text()
		n := store.NodeSpec{Kind: protocol.KindUser, Predecessor: at.Seq, Status: protocol.StatusSealed, Tokens: len(text) / 4, Tokenizer: f.Tokenizer,
			Content: store.Content{Parts: []protocol.Part{{Type: protocol.PartText, Text: text}}}}
		if at.Kind == protocol.KindUser {
			n.Kind = protocol.KindAssistant
			n.Content.Model, n.Content.StopReason = f.Model, "stop"
			n.Content.Usage = &protocol.Usage{InputTokens: int64(4 * n.Tokens), OutputTokens: int64(n.Tokens)}
			n.Content.Reads = []store.Run{{First: store.Root, Last: at.Seq, Tools: true}}
		}
		sk, err := tx.Append(n)
		if err != nil {
			return done, err
		}
		f.nodes = append(f.nodes, sk)
		if n.Kind == protocol.KindAssistant && f.ToolEvery > 0 && f.rng.IntN(f.ToolEvery) == 0 {
			if err := f.tool(tx, sk); err != nil {
				return done, err
			}
			done++
		}
	}
	return count, nil
}

func (f *filler) tool(tx *store.Tx, caller store.Skeleton) error {
	text := f.text()
	_, err := tx.Append(store.NodeSpec{Kind: protocol.KindTool, Caller: caller.Seq, Status: protocol.StatusSealed, Tokens: len(text) / 4, Tokenizer: f.Tokenizer,
		Content: store.Content{Parts: []protocol.Part{
			{Type: protocol.PartToolCall, CallID: "call", Name: "read", Arguments: protocol.Raw(`{"path":"main.go"}`)},
			{Type: protocol.PartToolResult, CallID: "call", Text: text},
		}}})
	return err
}

var words = [...]string{"the", "build", "fails", "on", "a", "node", "that", "is", "sealed", "when", "its", "branch", "moves", "to", "HEAD", "and",
	"we", "could", "look", "whether", "this", "run", "covers", "it", "before", "release", "because", "function", "returns", "error", "beside", "context"}

// remarks are what one message in fifty says, as people do: what summaries live on.
var remarks = [...]string{"You must not change the file config/%d.yaml.", "Never delete the branch release-%d.", "Next, update docs/page%d.md.", "I suspect that cache %d is stale.",
	"We decided to use format %d.", "The commit is %040x.", "ok  convls/pkg%d 0.3s"}

func (f *filler) text() string {
	size := f.Text/2 + f.rng.IntN(f.Text+1)
	b := make([]byte, 0, size+16)
	for len(b) < size {
		b = append(b, words[f.rng.IntN(len(words))]...)
		b = append(b, ' ')
	}
	for i := 60; i < size; i += 60 + f.rng.IntN(60) {
		if b[i] == ' ' {
			b[i-1] = '.' // sentences
		}
	}
	if f.rng.IntN(50) == 0 {
		return string(b[:size]) + ". " + fmt.Sprintf(remarks[f.rng.IntN(len(remarks))], f.rng.IntN(1_000))
	}
	return string(b[:size])
}
