import { createHash } from 'node:crypto'
import { conditionsKey } from './match-settings.ts'
import type { RouteSettings } from './route-settings.ts'

/** Identifies a route, also after a reload. It is a digest, since the values of headers that a route asks for may be secrets. */
export function routeIdOf(settings: RouteSettings): string {
  const text = JSON.stringify([settings.host, settings.path, conditionsKey(settings)])
  return createHash('sha256').update(text).digest('base64url').slice(0, 16)
}
