package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"convls/model"
	"convls/settings"
)

// How long providers may take to list their models: a person waits for it, and
// with --online said that it matters.
const (
	shortTimeout  = 5 * time.Second
	onlineTimeout = 30 * time.Second
)

// ErrProblems says that the report, which has been printed, has problems.
var ErrProblems = errors.New("something needs attention: see the report")

// Options are what the command gets from the one around it.
type Options struct {
	// Paths tells where things are; it is called when the command runs.
	Paths func() (settings.Paths, error)
}

// Command returns the command convls doctor. It fails with [ErrProblems] if
// anything that was looked at does not work.
func Command(o Options) *cobra.Command {
	var asJSON, check, online, offline bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps convls from working",
		Long: "Reports the version, settings, store, keys and log, and asks each provider that is set up for its models.\n" +
			"Nothing is changed, and no key is shown. The exit status is 1 if anything does not work.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			x := &examination{environ: os.Environ(), check: check, timeout: shortTimeout}
			switch {
			case online:
				x.timeout = onlineTimeout
			case offline:
				x.timeout = 0
			}
			if !asJSON {
				x.progress = cmd.ErrOrStderr()
			}
			return x.run(cmd.Context(), cmd.OutOrStdout(), o.Paths, asJSON)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	f.BoolVar(&check, "check", false, "read the whole ledger and look for damage")
	f.BoolVar(&online, "online", false, "give the providers 30 seconds to answer instead of 5")
	f.BoolVar(&offline, "offline", false, "do not ask the providers, and run no key command")
	cmd.MarkFlagsMutuallyExclusive("online", "offline")
	return cmd
}

// examination is one run of the doctor.
type examination struct {
	environ []string
	check   bool
	// timeout is how long providers may take; 0 asks none.
	timeout time.Duration
	// progress is told how a check goes on; nil tells nobody.
	progress io.Writer

	report Report
}

func (x *examination) run(ctx context.Context, out io.Writer, find func() (settings.Paths, error), asJSON bool) error {
	x.report = Report{
		Program:   program(),
		Settings:  Settings{Warnings: []string{}},
		Providers: []Provider{},
		Problems:  []Finding{},
		Notes:     []Finding{},
	}
	paths, err := find()
	if err != nil {
		x.report.problem("settings", "correct the flag or the environment variable that is named", "%v", err)
	} else {
		base := x.examineSettings(paths)
		x.examineStore(ctx, paths.DataDir)
		x.examineProviders(ctx, base.Settings(), model.NewSystemKeys(x.variable))
		x.examineLog(paths.LogFile)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the examination was interrupted: %w", err)
	}
	x.report.OK = len(x.report.Problems) == 0
	if asJSON {
		err = writeJSON(out, x.report)
	} else {
		_, err = io.WriteString(out, x.report.text(x.check))
	}
	if err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if !x.report.OK {
		return ErrProblems
	}
	return nil
}

// variable returns a variable of the environment.
func (x *examination) variable(name string) string {
	for _, line := range x.environ {
		if len(line) > len(name) && line[len(name)] == '=' && line[:len(name)] == name {
			return line[len(name)+1:]
		}
	}
	return ""
}

// examineSettings loads the settings; those that are at fault are left out.
func (x *examination) examineSettings(paths settings.Paths) *settings.Base {
	r := &x.report
	r.Settings.File = look(paths.Config)
	base, warnings, err := settings.Load(paths.Config, x.environ)
	if err != nil {
		r.problem("settings", "correct it; docs/settings.md lists every setting. This report goes on without what is at fault", "%v", err)
	}
	r.Settings.Warnings = append(r.Settings.Warnings, warnings...)
	for _, w := range warnings {
		r.note("settings", "", "%s", w)
	}
	s := base.Settings()
	r.Settings.Model = s.Model
	if s.Compaction.Model != s.Model {
		r.Settings.Summariser = s.Compaction.Model
	}
	return base
}

func (x *examination) examineLog(path string) {
	x.report.Log = look(path)
}

// look returns what there is at path.
func look(path string) File {
	f := File{Path: path}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		f.Found, f.Bytes = true, info.Size()
	}
	return f
}
