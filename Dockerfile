# The server with its models inside; at run time it uses no network but its own port.
# BASE: any image with Python >= 3.11 and its venv module as `python3`.
# SCRIPTS=false: leave out the scripts of the web pages. The pages work without them, and the build needs no npm registry.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
ARG SCRIPTS=true
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements.lock ./
RUN python3 -m venv /opt/quadcite \
 && /opt/quadcite/bin/pip install --quiet --no-deps --require-hashes -r requirements.lock
COPY . .
# The scripts of the web pages, with a Node that the image does not keep.
RUN if [ "$SCRIPTS" = true ]; then \
      python3 -m venv /tmp/node && sh kg/server/assets/build.sh /tmp/node/bin/python; \
    fi
RUN /opt/quadcite/bin/pip install --quiet --no-deps .
RUN QUADCITE_MODELS_DIR=/opt/quadcite/models /opt/quadcite/bin/kg models pull

FROM ${BASE}
LABEL org.opencontainers.image.title="Quadcite" \
      org.opencontainers.image.licenses="Apache-2.0"
# The index takes less processor time and memory with it; bases without apt-get do without.
RUN if command -v apt-get > /dev/null; then \
      apt-get update -qq && apt-get install -y -qq --no-install-recommends libjemalloc2 && rm -rf /var/lib/apt/lists/*; \
    fi
# A volume that is mounted on /backups takes the owner of the folder.
RUN groupadd --system --gid 10001 quadcite \
 && useradd --system --uid 10001 --gid quadcite --home-dir /data --create-home quadcite \
 && install --directory --owner quadcite --group quadcite /backups
COPY --from=build /opt/quadcite /opt/quadcite
# All addresses of the container: the server refuses that until there are accounts (`kg token new NAME`). The root file
# system can be read-only: the server writes /data and /tmp, and backups to /backups if a setting names it.
ENV PATH=/opt/quadcite/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    QUADCITE_MODELS_DIR=/opt/quadcite/models \
    QUADCITE_DATA_DIR=/data/kg-data \
    QUADCITE_ANSWERS_DIR=/data/answers \
    QUADCITE_HOST=0.0.0.0 \
    QUADCITE_PORT=8000
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
# The certificate names the address of clients, not loopback, so it is not verified here.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["python3", "-c", "\
import os, ssl, urllib.request as request; \
scheme = 'https' if os.environ.get('QUADCITE_TLS_CERT') else 'http'; \
url = f\"{scheme}://127.0.0.1:{os.environ['QUADCITE_PORT']}/health/live\"; \
request.urlopen(url, timeout=4, context=ssl._create_unverified_context()).close()"]
ENTRYPOINT ["kg"]
CMD ["serve"]
