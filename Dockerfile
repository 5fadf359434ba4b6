# An image with nothing in it but the server: docs/operations/docker.md explains how to run it.
#
#     docker build -t cellserver .
#
# compiles the server in an image of Go. `make image-files` compiles it on this machine, and
#
#     docker build -t cellserver --build-arg SOURCE=compiled .
#
# takes what that has put into bin/image. The target ratelimit is an image in the place of envoyproxy/ratelimit
# (docs/ratelimit-image.md): `docker build --target ratelimit .`

ARG SOURCE=compile

FROM golang:1.26 AS compile
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make image-files IMAGE=/image

FROM scratch AS compiled
COPY bin/image /image

FROM compile AS compile-ratelimit
RUN make ratelimit-files IMAGE=/image

FROM compiled AS compiled-ratelimit

FROM ${SOURCE}-ratelimit AS ratelimit-files

FROM scratch AS ratelimit
LABEL org.opencontainers.image.title="cellserver-ratelimit" \
      org.opencontainers.image.description="cellserver in the place of envoyproxy/ratelimit" \
      org.opencontainers.image.licenses="MIT"
COPY --from=ratelimit-files /image/root/etc /etc
COPY --from=ratelimit-files /image/root/cellserver /image/ratelimit /bin/
USER 65534:65534
EXPOSE 8080 8081
ENTRYPOINT ["/bin/ratelimit"]

FROM ${SOURCE} AS files

FROM scratch
LABEL org.opencontainers.image.title="cellserver" \
      org.opencontainers.image.description="A rate limiter that every Redis client can call" \
      org.opencontainers.image.licenses="MIT"
COPY --from=files /image/root /
COPY --from=files --chown=65532:65532 /image/data /data
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 6379
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["/cellserver", "ping"]
ENTRYPOINT ["/cellserver"]
# Without arguments it listens on all addresses of the container, and wants a password in
# CELLSERVER_REQUIREPASS for that. Arguments replace these: an
# operator who gives some, or a file, says where to listen too.
CMD ["--bind=* -::*"]
