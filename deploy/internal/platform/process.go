package platform

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// process is a program that ends with this one, and can be started again.
type process struct {
	Log    string // file of what it prints, of all its starts
	binary string
	cmd    *exec.Cmd     // nil: it was ended, or never ran
	ended  chan struct{} // closed when it has ended
}

// run starts it; build is the command that makes the binary.
func (p *process) run(build string, args ...string) error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, ended := exec.Command(p.binary, args...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w; build it with `%s`", err, build)
	}
	p.cmd, p.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return nil
}

// Kill ends it without a chance to tidy up.
func (p *process) Kill() { p.signal(syscall.SIGKILL) }

// Stop ends it properly.
func (p *process) Stop() { p.signal(syscall.SIGTERM) }

func (p *process) signal(number syscall.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(number)
	<-p.ended
	p.cmd = nil
}
