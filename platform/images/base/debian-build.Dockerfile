# In place of debian:… where things are built: it trusts whom this machine trusts, such as a company's CA between it and the registries.
# It is in no image that results.
FROM oal-base/debian:bookworm
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt
