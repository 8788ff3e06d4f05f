package doctor

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"convls/protocol"
	"convls/store"
)

// Program is what this program is.
type Program struct {
	Version string `json:"version"`
	// Revision is the commit that it was built from, "" if the build did not record
	// it; Modified says that files had changed since.
	Revision string `json:"revision,omitzero"`
	Modified bool   `json:"modified,omitzero"`
	// Go is the version of the Go tools that built it.
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Protocol and Format are the newest that it knows.
	Protocol int `json:"protocol_version"`
	Format   int `json:"store_format"`
}

// Version returns the version of this program: of a release its number, else
// devel, with the commit it was built from if that is known.
func Version() string { return program().Version }

// program reads what the build recorded.
func program() Program {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return programOf(info)
}

func programOf(info *debug.BuildInfo) Program {
	p := Program{
		Go:       cmp.Or(info.GoVersion, runtime.Version()),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Protocol: protocol.Version,
		Format:   store.Format,
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			p.Revision = s.Value
		case "vcs.modified":
			p.Modified = s.Value == "true"
		}
	}
	p.Version = info.Main.Version
	if p.Version == "" || p.Version == "(devel)" {
		p.Version = "devel"
		if p.Revision != "" {
			p.Version += "-" + p.Revision[:min(12, len(p.Revision))]
			if p.Modified {
				p.Version += "+dirty"
			}
		}
	}
	return p
}

// VersionCommand returns the command convls version.
func VersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := program()
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), p)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), p)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// String returns the program on one line.
func (p Program) String() string {
	return fmt.Sprintf("convls %s (%s, %s, protocol %d, store format %d)", p.Version, p.Go, p.Platform, p.Protocol, p.Format)
}
