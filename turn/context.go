package turn

import (
	"convls/compaction"
	"convls/projection"
	"convls/protocol"
	"convls/store"
)

// Context renders the context view of a session as a turn would send it, with the
// budget of the model that would answer.
func (e *Engine) Context(sess *store.Session, env Environment, o projection.Options) (*projection.Context, protocol.Budget, error) {
	settings, id, err := e.effective(sess, env, "")
	if err != nil {
		return nil, protocol.Budget{}, err
	}
	provider, name, err := e.Models.Resolve(settings, id, env.Keys)
	if err != nil {
		return nil, protocol.Budget{}, err
	}
	counter, err := e.Models.Counter(settings, id)
	if err != nil {
		return nil, protocol.Budget{}, err
	}
	r, err := sess.Reader()
	if err != nil {
		return nil, protocol.Budget{}, err
	}
	defer r.Close()
	full := e.options(counter, settings, o.Head)
	full.Raw, full.Draft = o.Raw, o.Draft
	view, err := projection.Render(r, full)
	if err != nil {
		return nil, protocol.Budget{}, err
	}
	caps := provider.Capabilities(name)
	return view, compaction.Budget(counter.Adjust(int64(view.Tokens)), caps.Window, caps.MaxOutput, counter.Source(), settings.Compaction), nil
}

// Draft returns the parts that a message that is not sent yet would have.
func Draft(d *protocol.ContextDraft) ([]protocol.Part, error) {
	if d == nil || len(d.Content)+len(d.Context) == 0 {
		return nil, nil
	}
	content := d.Content
	if len(content) == 0 {
		content = protocol.SendContent{{Type: protocol.PartText, Text: "(nothing written yet)"}}
	}
	return messageParts(content, d.Context)
}

// maxBudgetNodes is the longest branch whose window is measured unasked.
const maxBudgetNodes = 2_000

// Budget returns how full the window of a session's model is at HEAD, nil for a
// branch so long that rendering it would keep a person waiting: context/get tells
// that when it is asked.
func (e *Engine) Budget(sess *store.Session, env Environment) (*protocol.Budget, error) {
	long, err := longerThan(sess, maxBudgetNodes)
	if err != nil || long {
		return nil, err
	}
	_, b, err := e.Context(sess, env, projection.Options{})
	return &b, err
}

// longerThan reports whether HEAD's view has more chain nodes than this.
func longerThan(sess *store.Session, nodes uint64) (bool, error) {
	return read(sess, func(r *store.Reader) (bool, error) {
		head, err := r.Skeleton(r.State.Head)
		if err != nil || head.Depth <= nodes {
			return false, err
		}
		sub, _, err := projection.Substituted(r, head)
		if err != nil {
			return false, err
		}
		return sub == nil || head.Depth-sub.Covers.Count > nodes, nil
	})
}
