# One static binary and nothing else. `docker build -t windlass:0.1.0 .`
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN make static PROFILE=dist && cp "$(make --silent static-path PROFILE=dist)" /windlass

FROM scratch
COPY --from=build /windlass /usr/local/bin/windlass
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/windlass"]
