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
	"oal/deploy/internal/store"
)

const usage = `usage: oal-deploy serve --config FILE            run the push service
       oal-deploy check --config FILE            check the configuration and the files it names
       oal-deploy ctl COMMAND --config FILE      ask a running service:
           fleet [--site SITE] [--state STATE]   what each AP has and should have
           ap ID                                 one AP
           rollouts                              rollouts and their numbers
           abort ID [--reason TEXT]              give the members back what they had
           expand ID                             give it to everyone in its scope now
           kill SCOPE --reason TEXT [--who NAME] [--policy NAME]
                                                 no policy acts in fleet, site/SITE or ap/AP_ID, or one does not
           unkill SCOPE --reason TEXT [--who NAME] [--policy NAME]
                                                 take that back
           kills                                 what is switched off, and who has heard
           ticket AP_ID [--site S] [--ttl 24h]   a string with which that AP enrols, once
           tickets                               those that are open
           withdraw TICKET                       make one useless
           revoke AP_ID --reason TEXT            keep an AP out, here and in the stream jobs
           restore AP_ID [--reason TEXT]         let it in again
           access                                who is revoked
           audit [--limit N]                     who asked the admin interface for what
           history [--limit N]                   latest steps, refusals, enrolments and changes of the kill switch
           backup FILE                           copy the state of the running service (embedded store)
       oal-deploy restore --config FILE [--force] BACKUP   put a copy back while the service is stopped
       oal-deploy user NAME ROLE                 a token, and its line for admin_users_file
ctl takes --token-file FILE for the token of another user than admin.
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
	case "restore":
		return restore(args[1:])
	case "user":
		return newUser(args[1:], os.Stdout, os.Stderr)
	}
	return fmt.Errorf("no such command: %s; there are serve, check, ctl, restore and user", args[0])
}

// restore puts a backup back.
func restore(args []string) error {
	flags := flag.NewFlagSet("restore", flag.ContinueOnError)
	path := flags.String("config", "", "configuration file (required)")
	force := flags.Bool("force", false, "put a state that is there aside, as PATH.before")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("restore needs the file that `ctl backup` wrote, after the flags")
	}
	c, err := config.Load(*path)
	if err != nil {
		return err
	}
	if c.Store.Path == "" {
		return errors.New("the state is in PostgreSQL; put it back with pg_restore or psql, from what pg_dump wrote")
	}
	if err := store.Restore(flags.Arg(0), c.Store.Path, *force); err != nil {
		return err
	}
	fmt.Println(c.Store.Path, "is as in the backup; revocations that Kafka knows and it does not are taken over at "+
		"the next start")
	return nil
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
	s, err := service.NewPatient(ctx, c, logger)
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
