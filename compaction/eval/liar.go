package eval

import (
	"context"
	"strings"

	"convls/compaction"
	"convls/compaction/manifest"
	"convls/protocol"
)

// liar makes a summariser of an [Adversary]. An answer that is nothing but lies is
// refused as a whole, so it does what a cunning one would: asked again, it mixes
// something true in. What is taken in then is up to the reducer.
type liar struct{ Named }

var _ compaction.Summariser = liar{}

// liarRoom is how many tokens of messages a liar takes at once: so few that a cycle
// comes in several chunks, and the longest messages in pieces.
const liarRoom = 600

// Name returns the adversary's.
func (l liar) Name() string { return l.Named.Name }

// Room is the same for every manifest.
func (liar) Room(*manifest.Manifest, string) (int64, error) { return liarRoom, nil }

// Count takes four bytes for a token.
func (liar) Count(text string) int { return len(text) / 4 }

// Record says nothing: there are no instructions.
func (liar) Record() (string, map[string]any) { return "", nil }

// Summarise lies.
func (l liar) Summarise(ctx context.Context, q compaction.Question) (compaction.Answer, error) {
	answer := compaction.Answer{Changes: l.Changes(q.Previous, q.Messages), Usage: protocol.Usage{Calls: 1}}
	if q.Repair != nil {
		answer.Changes.Changes = append(answer.Changes.Changes, truth(q.Messages[0]))
	}
	return answer, ctx.Err()
}

// truth is a change that holds: what a message begins with, as an open question.
func truth(m manifest.Message) manifest.Change {
	first, _, _ := strings.Cut(strings.TrimSpace(m.Text), "\n")
	return manifest.Change{Op: manifest.Add, Section: manifest.Unknowns, Status: manifest.Unknown, Text: first, Sources: []string{m.ID}, Quote: first}
}
