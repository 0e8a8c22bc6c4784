# What holds a pod's namespaces. FROM the base that platform/images/base makes.
FROM oal-base/debian:bookworm
CMD ["/bin/sleep", "infinity"]
