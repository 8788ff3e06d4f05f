// Package eval is the command that measures what compaction keeps: it runs planted
// conversations through the engine, in a ledger that is thrown away.
package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"convls/compaction"
	"convls/compaction/eval"
	"convls/model"
	"convls/protocol"
	"convls/settings"
	"convls/store"
)

// all stands for every summariser that needs no model.
const all = "all"

// Options are what the command gets from the one around it.
type Options struct {
	// Paths tells where things are; it is called when the command runs.
	Paths func() (settings.Paths, error)
}

// Command returns the command convls eval.
func Command(o Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure what compaction keeps",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(compactionCommand(o))
	return cmd
}

func compactionCommand(o Options) *cobra.Command {
	x := evaluation{}
	cmd := &cobra.Command{
		Use:   "compaction",
		Short: "Compact planted conversations again and again, and count what is kept",
		Long: "Writes a conversation with planted constraints, prohibitions, names, suppositions and tasks into a ledger that is thrown away, and compacts it after each cycle.\n" +
			"Reports for each cycle what the summary still holds, to the letter, and what it holds that nobody said.\n" +
			"A summariser is extractive (built in), a model of the settings as provider/name, one that misbehaves (forgets, invents, merges, repeats, promotes),\n" +
			"or all, which is extractive and those that misbehave. A model is asked for real, and may cost money.\n" +
			"The exit status is 1 if a constraint, a prohibition or a name was lost, or an invented item was taken in.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			x.progress = cmd.ErrOrStderr()
			return x.run(cmd.Context(), cmd.OutOrStdout(), o.Paths)
		},
	}
	f := cmd.Flags()
	f.IntVar(&x.Cycles, "cycles", 10, "how often the conversation goes on and is compacted")
	f.Uint64Var(&x.Seed, "seed", 7, "makes the conversation: the same one for the same seed")
	f.StringVar(&x.summariser, "summariser", compaction.Extractive, "extractive, a model as provider/name, an adversary, or all")
	f.BoolVar(&x.asJSON, "json", false, "print the report as JSON")
	return cmd
}

// evaluation is one run of the command.
type evaluation struct {
	Report
	summariser string
	asJSON     bool
	progress   io.Writer
}

// Report is what the command prints with --json.
type Report struct {
	Cycles int    `json:"cycles"`
	Seed   uint64 `json:"seed"`
	// Window is that of the conversation's model, in tokens.
	Window      int64              `json:"window"`
	Evaluations []*eval.Evaluation `json:"evaluations"`
}

func (x *evaluation) run(ctx context.Context, out io.Writer, find func() (settings.Paths, error)) (err error) {
	if x.Cycles < 1 {
		return fmt.Errorf("--cycles is 1 or more, not %d", x.Cycles)
	}
	paths, err := find()
	if err != nil {
		return err
	}
	base, _, err := settings.Load(paths.Config, os.Environ())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "convls-eval-")
	if err != nil {
		return fmt.Errorf("make a folder for the evaluation's ledger: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ledger, err := store.Open(ctx, store.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		return err
	}
	err = x.evaluate(ctx, ledger, base.Settings())
	if err := errors.Join(err, ledger.Close()); err != nil {
		return err
	}
	if err := x.print(out); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return x.verdict()
}

// evaluate runs the summarisers one after the other.
func (x *evaluation) evaluate(ctx context.Context, ledger *store.Store, set protocol.Settings) error {
	names := []string{x.summariser}
	if x.summariser == all {
		names = eval.Names()
	}
	models := model.NewRegistry()
	defer models.Close()
	x.Window = eval.Window
	for _, name := range names {
		e, err := eval.Run(ctx, eval.Options{Summariser: name, Cycles: x.Cycles, Seed: x.Seed, Window: x.Window, Store: ledger, Models: models, Settings: set,
			Keys: model.NewSystemKeys(os.Getenv), Progress: func(cycle int) { x.tell("%s: cycle %d of %d", name, cycle, x.Cycles) }})
		x.tell("")
		if err != nil {
			return err
		}
		x.Evaluations = append(x.Evaluations, e)
	}
	return nil
}

// tell shows on a terminal what is being done, in one line. Nobody depends on it, so
// writing may fail.
func (x *evaluation) tell(format string, args ...any) {
	if f, ok := x.progress.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		_, _ = fmt.Fprintf(f, "\r\x1b[K"+format, args...)
	}
}

func (x *evaluation) print(out io.Writer) error {
	if !x.asJSON {
		_, err := io.WriteString(out, x.text())
		return err
	}
	data, err := protocol.Marshal(x.Report)
	if err != nil {
		return err
	}
	raw := protocol.Raw(data)
	if err := raw.Indent(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", raw)
	return err
}

// verdict is an error if what must hold does not.
func (x *evaluation) verdict() error {
	var breaches []string
	for _, e := range x.Evaluations {
		if why := e.Unanswered(); why != "" {
			return fmt.Errorf("%s never answered: %s", e.Summariser, why)
		}
		breaches = append(breaches, e.Breaches...)
	}
	switch len(breaches) {
	case 0:
		return nil
	case 1:
		return errors.New(breaches[0])
	}
	return fmt.Errorf("%s (and %d more: --json lists them)", breaches[0], len(breaches)-1)
}
