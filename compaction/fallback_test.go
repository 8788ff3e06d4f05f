package compaction

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/zap"

	"convls/model"
	"convls/protocol"
	"convls/store"
)

// useless is a summariser whose answers can not be used, and cost something.
type useless struct{ Summariser }

func (useless) Name() string { return "test/useless" }

func (useless) Summarise(context.Context, Question) (Answer, error) {
	return Answer{Usage: protocol.Usage{Calls: 1, InputTokens: 500, CostUSD: 0.25}}, &Refusal{Reason: ReasonInvalid, Message: "no schema", Repairable: true}
}

// TestFallbackCosts: what the first summariser cost is recorded with the summary
// that another one wrote.
func TestFallbackCosts(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	models := model.NewRegistry()
	defer models.Close()
	e := New(Config{Store: s, Models: models, Logger: zap.NewNop(), Summarisers: func(string, func() (Summariser, error)) (Summariser, error) {
		return useless{NewExtractive()}, nil
	}})
	defer e.Close()
	created, err := s.Create(t.Context(), store.Request{}, store.Info{Policy: protocol.PolicyRolling}, "")
	if err != nil {
		t.Fatal(err)
	}
	sess, err := s.Session(created.Result)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), sess, store.Request{}, func(tx *store.Tx) (struct{}, error) {
		at := tx.State.Head
		for i := range 40 {
			n := store.NodeSpec{Kind: protocol.KindUser, Predecessor: at, Status: protocol.StatusSealed, Content: store.Content{Parts: text(fmt.Sprintf("Load number %d came in today, and it was as large as the one before.", i))}}
			sk, err := tx.Append(n)
			if err != nil {
				return struct{}{}, err
			}
			at = sk.Seq
		}
		return struct{}{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	res, err := e.Run(t.Context(), sess, store.Request{}, Request{}, Client{Settings: protocol.Settings{Compaction: protocol.CompactionSettings{Fallback: Extractive}}, Model: model.Offline})
	if err != nil {
		t.Fatal(err)
	}
	if res, err = e.Wait(t.Context(), sess, res.CompactionID, nil); err != nil || res.State != protocol.RunFinished {
		t.Fatalf("%+v, %v", res, err)
	}
	r, err := sess.Reader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sk, err := r.Lookup(res.SummaryID)
	if err != nil {
		t.Fatal(err)
	}
	content, err := r.Content(sk.Seq)
	if err != nil {
		t.Fatal(err)
	}
	p := content.Provenance
	if !p.FellBack || p.Model != Extractive || p.Usage == nil || p.Usage.Calls != 2 || p.Usage.CostUSD != 0.5 {
		t.Errorf("fell back: %t, model %s, usage %+v", p.FellBack, p.Model, p.Usage)
	}
}
