# In place of golang:…: the Go of this machine. Context: a folder with go/ and ca-certificates.crt.
FROM oal-base/debian-build:bookworm
COPY go /usr/local/go
ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin GOTOOLCHAIN=local
