import { attribute } from './attribute.ts'
import { clientCertificate } from './client-certificate.ts'
import { cookie } from './cookie.ts'
import type { Dimension } from './dimension.ts'
import { header } from './header.ts'
import { host } from './host.ts'
import { ip } from './ip.ts'
import { jwt } from './jwt.ts'
import { method } from './method.ts'
import { query } from './query.ts'
import { resource } from './resource.ts'

/** Every dimension Diana brings. */
export const dimensions: readonly Dimension[] = [
  ip,
  resource,
  host,
  method,
  header,
  query,
  cookie,
  jwt,
  clientCertificate,
  attribute,
]
