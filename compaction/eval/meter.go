package eval

import (
	"context"

	"convls/compaction"
	"convls/protocol"
)

// meter is a summariser that is measured.
type meter struct {
	compaction.Summariser
	// calls is how often it was asked.
	calls int64
	// read are the ids of the messages that it was given, in order. The pieces of a
	// message that was divided count as one, and so does a second round.
	read  []string
	usage protocol.Usage
}

// Summarise asks the summariser and notes what it was asked, and what that cost.
func (m *meter) Summarise(ctx context.Context, q compaction.Question) (compaction.Answer, error) {
	answer, err := m.Summariser.Summarise(ctx, q)
	m.calls++
	m.usage = m.usage.Add(answer.Usage)
	if q.Repair != nil {
		return answer, err
	}
	for _, message := range q.Messages {
		if n := len(m.read); n == 0 || m.read[n-1] != message.ID {
			m.read = append(m.read, message.ID)
		}
	}
	return answer, err
}
