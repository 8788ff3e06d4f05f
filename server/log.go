package server

import (
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"gopkg.in/natefinch/lumberjack.v2"
)

// A log file is at most 10 MB, and the last three stay.
const (
	logMegabytes = 10
	logBackups   = 3
)

// Log is a logger that writes JSON lines to a file, never to standard output,
// which belongs to the protocol.
type Log struct {
	*zap.Logger
	level zap.AtomicLevel
	file  *lumberjack.Logger
}

// NewLogger opens the log file at path, which only this user can read, and its
// folder if need be. The level is debug, info, warn or error; empty means info.
func NewLogger(path, level string) (*Log, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	l := &Log{
		level: zap.NewAtomicLevel(),
		file:  &lumberjack.Logger{Filename: path, MaxSize: logMegabytes, MaxBackups: logBackups},
	}
	if err := l.SetLevel(level); err != nil {
		return nil, err
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	l.Logger = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.AddSync(l.file), l.level),
		zap.Fields(zap.Int("pid", os.Getpid())))
	return l, nil
}

// SetLevel changes from which level on entries are written.
func (l *Log) SetLevel(level string) error {
	if level == "" {
		level = "info"
	}
	parsed, err := zapcore.ParseLevel(level)
	if err != nil || parsed < zapcore.DebugLevel || parsed > zapcore.ErrorLevel {
		return fmt.Errorf("log level %q is none of debug, info, warn and error", level)
	}
	l.level.SetLevel(parsed)
	return nil
}

// Close closes the file. What is logged after it opens the file again.
func (l *Log) Close() error { return l.file.Close() }
