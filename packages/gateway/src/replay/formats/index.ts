import { albFormat } from './alb.ts'
import { caddyFormat } from './caddy.ts'
import {
  combinedFormat,
  combinedTimeFormat,
  commonFormat,
  forwardedFormat,
  traefikFormat,
  vhostFormat,
} from './combined.ts'
import { dianaExactFormat, dianaFormat } from './diana.ts'
import { envoyFormat } from './envoy.ts'
import type { LogFormat } from './format.ts'
import { haproxyFormat } from './haproxy.ts'
import { traefikJsonFormat } from './traefik-json.ts'
import { w3cFormat } from './w3c.ts'

/** All formats that are recognized; of several that read a log, the first one is taken. */
export const formats: readonly LogFormat[] = [
  dianaExactFormat,
  dianaFormat,
  caddyFormat,
  traefikJsonFormat,
  w3cFormat,
  albFormat,
  envoyFormat,
  haproxyFormat,
  vhostFormat,
  traefikFormat,
  combinedTimeFormat,
  forwardedFormat,
  combinedFormat,
  commonFormat,
]
