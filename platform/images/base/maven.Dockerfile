# In place of maven:…
FROM oal-base/debian-build:bookworm
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jdk-headless maven && rm -rf /var/lib/apt/lists/*
COPY cacerts /etc/ssl/certs/java/cacerts
