import { z } from 'diana-limiter/schema'
import type { EarlierVersion } from '../earlier-versions.ts'

const versionShape = z.object({
  id: z.string().min(1).max(64),
  at: z.number().min(0),
  where: z.enum(['local', 'remote']),
  text: z.string(),
  by: z
    .object({
      from: z.string().max(256),
      who: z.string().max(256),
      comment: z.string().max(1000).optional(),
      rules: z.array(z.object({ id: z.string(), change: z.enum(['added', 'changed', 'removed']) })).max(100),
      changed: z.number().min(0),
    })
    .catch({ from: '', who: '', rules: [], changed: 0 }),
})

/** Returns the versions in a file; whatever is not one is left out. */
export function parseVersions(value: unknown): EarlierVersion[] {
  const { versions } = (value ?? {}) as { readonly versions?: unknown }
  if (!Array.isArray(versions)) return []
  return versions.flatMap(one => versionShape.safeParse(one).data ?? [])
}
