#!/bin/bash
# Hears public events with nothing but bash: prints what arrives, as it arrives. An event may arrive twice, under one ce-id.
# Usage: NATS_USER=… NATS_PASSWORD=… plain-subscriber.sh <port> <subject>
while :; do
  if { exec 3<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null; then
    printf 'CONNECT {"user":"%s","pass":"%s","headers":true,"verbose":false}\r\nSUB %s 1\r\nPING\r\n' \
      "$NATS_USER" "$NATS_PASSWORD" "$2" >&3
    while IFS= read -r -u 3 line; do
      line=${line%$'\r'}
      if [ "$line" = PING ]; then printf 'PONG\r\n' >&3; else printf '%s\n' "$line"; fi
    done
    exec 3>&-
  fi
  sleep 0.1
done
