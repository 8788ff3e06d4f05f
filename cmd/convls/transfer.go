package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"convls/cmd/convls/doctor"
	"convls/model"
	"convls/protocol"
	"convls/settings"
	"convls/store"
	"convls/transfer"
)

// importCommand imports conversations of other programs, and exports of ours.
func importCommand(f *flags) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Import conversations: convls exports, message trees, coding-agent sessions",
		Long: "Imports sessions from JSON Lines files. The format is found by looking at the file. Of each session either all is stored or nothing.\n" +
			"FILE may be - for standard input.",
		Args: arguments(1, 0, "which files? convls import FILE..., where - is standard input"),
		RunE: func(cmd *cobra.Command, files []string) error {
			return withStore(cmd.Context(), *f, func(s *store.Store, set protocol.Settings) error {
				failed := false
				for _, file := range files {
					report, err := importFile(cmd.Context(), s, set, file, format, cmd.InOrStdin())
					printReport(cmd.OutOrStdout(), file, report)
					if err != nil {
						fmt.Fprintf(cmd.ErrOrStderr(), "convls: %s: %s\n", file, message(err))
					}
					failed = failed || err != nil || len(report.Sessions) == 0
				}
				if failed {
					return errors.New("not everything was imported: see above")
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "convls, tree or agent (default: found by looking)")
	return cmd
}

func importFile(ctx context.Context, s *store.Store, set protocol.Settings, file, format string, stdin io.Reader) (protocol.ImportReport, error) {
	src := transfer.Source{Path: file, Format: format}
	if file == "-" {
		src = transfer.Source{Reader: stdin, Name: "standard input", Format: format}
	}
	models := model.NewRegistry()
	defer models.Close()
	if k, err := models.Counter(set, set.Model); err == nil {
		src.Count, src.Tokenizer = k.Parts, k.ID()
	}
	return transfer.Import(ctx, s, src, func(int64, int64) {})
}

// count writes a number with the noun that it counts.
func count(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func printReport(w io.Writer, file string, r protocol.ImportReport) {
	if len(r.Sessions) > 0 {
		fmt.Fprintf(w, "%s: %s, %s, format %s\n", file, count(int64(len(r.Sessions)), "session", "sessions"), count(r.Nodes, "node", "nodes"), r.Format)
	}
	for _, e := range r.Sessions {
		fmt.Fprintf(w, "  %s  %s, %s, %s  %s\n", e.SessionID, count(e.Nodes, "node", "nodes"), count(e.Branches, "branch", "branches"), count(e.Summaries, "summary", "summaries"), e.Title)
	}
	for _, e := range r.Skipped {
		where := ""
		if e.Line > 0 {
			where = fmt.Sprintf(" line %d", e.Line)
		}
		if e.ID != "" {
			where += " " + e.ID
		}
		fmt.Fprintf(w, "  left out%s: %s\n", where, e.Reason)
	}
	if more := r.SkippedCount - int64(len(r.Skipped)); more > 0 {
		fmt.Fprintf(w, "  and %d more left out\n", more)
	}
}

// exportCommand writes a session out.
func exportCommand(f *flags) *cobra.Command {
	var o transfer.Options
	var out, head string
	var force bool
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Export a session as JSON Lines (all of it) or Markdown (one branch)",
		Long:  "Exports a session. SESSION is an id, the beginning of one, or last.",
		Example: "  convls export last --output talk.md\n" +
			"  convls export last --head server --format markdown\n" +
			"  convls export SESSION > session.jsonl",
		Args: arguments(1, 1, "which session? convls export SESSION, by the id that convls sessions lists, or last"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("format") && strings.HasSuffix(out, ".md") {
				o.Format = "markdown"
			}
			if head != "" && o.Format != "markdown" {
				return errors.New("--head chooses the branch of a Markdown export: JSON Lines have all branches")
			}
			if _, err := os.Stat(out); out != "" && err == nil && !force {
				return fmt.Errorf("%s exists already: choose another name, or replace it with --force", out)
			}
			return withStore(cmd.Context(), *f, func(s *store.Store, _ protocol.Settings) error {
				sess, err := findSession(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				if o.Head, err = headID(sess, head); err != nil {
					return err
				}
				if out == "" {
					return transfer.Export(cmd.Context(), sess, o, cmd.OutOrStdout())
				}
				size, err := transfer.ExportFile(cmd.Context(), sess, o, out)
				if err == nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d bytes\n", out, size)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&o.Format, "format", "jsonl", "jsonl or markdown (default: markdown for a name that ends in .md)")
	cmd.Flags().StringVar(&head, "head", "", "what a Markdown export ends with: a branch by name or number, a message as #n or by its id (default: HEAD)")
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that exists")
	cmd.Flags().StringVarP(&out, "output", "o", "", "a file to write (default: standard output)")
	return cmd
}

// headID returns the id of the node that a word names; see [findHead].
func headID(sess *store.Session, word string) (string, error) {
	r, err := sess.Reader()
	if err != nil {
		return "", err
	}
	defer r.Close()
	head, err := findHead(r, word)
	return head.ID, err
}

// sessionsCommand lists what can be exported.
func sessionsCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "sessions [WORDS]",
		Short: "List the sessions: id, last activity, nodes, title",
		RunE: func(cmd *cobra.Command, words []string) error {
			return withStore(cmd.Context(), *f, func(s *store.Store, _ protocol.Settings) error {
				all, _, err := s.Sessions(cmd.Context(), store.Filter{Query: strings.Join(words, " ")})
				for _, l := range all {
					fmt.Fprintf(cmd.OutOrStdout(), "%s  %s  %5d  %s\n", l.Info.ID, l.State.Updated.Local().Format(time.DateTime), l.State.Nodes, l.Info.Title)
				}
				switch {
				case err != nil || len(all) > 0:
				case len(words) > 0:
					fmt.Fprintf(cmd.ErrOrStderr(), "no title or workspace has %q: convls sessions lists all\n", strings.Join(words, " "))
				default:
					fmt.Fprintln(cmd.ErrOrStderr(), "there is no session yet: convls chat begins one")
				}
				return err
			})
		},
	}
}

// withStore opens the store for a command that needs no server.
func withStore(ctx context.Context, f flags, do func(*store.Store, protocol.Settings) error) error {
	paths, err := f.resolve()
	if err != nil {
		return err
	}
	base, warnings, err := settings.Load(paths.Config, os.Environ())
	if err != nil {
		return err
	}
	for _, w := range warnings {
		fmt.Fprintln(os.Stderr, "convls: setting ignored:", w)
	}
	s, err := store.Open(ctx, store.Options{Dir: paths.DataDir, Program: "convls " + doctor.Version()})
	if err != nil {
		return err
	}
	return errors.Join(do(s, base.Settings()), s.Close())
}
