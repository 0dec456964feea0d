import { z } from 'zod'
import type { EarlierVersion } from '../earlier-versions.ts'

const versionShape = z.object({
  id: z.string().min(1).max(64),
  at: z.number().min(0),
  where: z.enum(['local', 'remote']),
  text: z.string(),
})

/** The versions in a file; whatever is not one is left out. */
export function parseVersions(value: unknown): EarlierVersion[] {
  const { versions } = (value ?? {}) as { readonly versions?: unknown }
  if (!Array.isArray(versions)) return []
  return versions.flatMap(one => versionShape.safeParse(one).data ?? [])
}
