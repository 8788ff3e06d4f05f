package turn

import (
	"convls/model"
	"convls/protocol"
)

// maxRetries is how often a model call is tried again that failed before anything
// came.
const maxRetries = 3

// stream makes a prompt's call. It tries again only as long as nothing was shown:
// text that a person has read is never replaced by other text. It returns what had
// arrived even where it returns an error, and how often it tried.
func (e *Engine) stream(r *run, p *prompt) (resp *model.Response, attempts int, err error) {
	policy := model.RetryPolicy{Max: maxRetries, Wait: func(w model.RetryWait) {
		var cause *protocol.NodeError
		if me, ok := w.Err.(*model.Error); ok { //nolint:errorlint // Retry hands it over as it is
			cause = me.Node()
		}
		r.writer.retrying(r.ctx, r.reply, w.Attempt, w.After.Milliseconds(), cause)
	}}
	if n := r.env.Settings.Turn.MaxRetries; n != nil {
		policy.Max = max(*n, 0)
	}
	err = model.Retry(r.ctx, policy, func(attempt int) (bool, error) {
		attempts = attempt
		var err error
		resp, err = p.provider.Stream(r.ctx, p.request, func(d model.Delta) error {
			r.live.add(d)
			return r.ctx.Err()
		})
		return r.live.started(), err
	})
	if err == nil && resp.StopReason == "refusal" {
		err = &model.Error{Class: model.ClassRefused, Model: r.model, Message: "the model refused to answer"}
	}
	return resp, attempts, err
}
