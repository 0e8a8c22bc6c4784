// oal-deploy is the push service, and a small client of its admin interface.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"oal/deploy/internal/config"
	"oal/deploy/internal/service"
)

const usage = `usage: oal-deploy serve --config FILE            run the push service
       oal-deploy check --config FILE            check the configuration and the files it names
       oal-deploy ctl COMMAND --config FILE      ask a running service:
           fleet [--site SITE] [--state STATE]   what each AP has and should have
           ap ID                                 one AP
           rollouts                              rollouts and their numbers
           abort ID [--reason TEXT]              give the members back what they had
           expand ID                             give it to everyone in its scope now
           kill SCOPE --reason TEXT [--who NAME]   nothing is clamped in fleet, site/SITE or ap/AP_ID
           unkill SCOPE --reason TEXT [--who NAME] take that back
           kills                                 what is switched off, and who has heard
           history                               latest steps, refusals and turns of the kill switch
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "oal-deploy:", err)
		}
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
		fmt.Print(usage)
		if len(args) == 0 {
			return errors.New("no command")
		}
		return nil
	}
	switch args[0] {
	case "serve", "check":
		flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
		path := flags.String("config", "", "configuration file (required)")
		debug := flags.Bool("debug", false, "log more")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		c, err := config.Load(*path)
		if err != nil {
			return err
		}
		if args[0] == "check" {
			return check(c)
		}
		return serve(c, *debug)
	case "ctl":
		return ctl(args[1:], os.Stdout)
	}
	return fmt.Errorf("no such command: %s; there are serve, check and ctl", args[0])
}

// check makes the service and throws it away.
func check(c *config.Config) error {
	s, err := service.New(context.Background(), c, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	s.Stop()
	fmt.Println("the configuration is good")
	return nil
}

func serve(c *config.Config, debug bool) error {
	level := slog.LevelInfo
	if debug {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s, err := service.New(ctx, c, logger)
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		s.Stop()
		return err
	}
	<-ctx.Done()
	stop() // a second signal ends at once
	logger.Info("stopping")
	s.Stop()
	return nil
}
