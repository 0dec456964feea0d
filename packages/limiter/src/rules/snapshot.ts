import { randomUUID } from 'node:crypto'
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'

/** What a config centre said last, kept on disk for a start without it. */
export interface Snapshot {
  readonly source: string
  readonly version: string
  readonly text: string
}

// a document has at most 4 MiB, and what JSON escapes takes more
const largestBytes = 32 * 1024 * 1024

/** The snapshot, if there is one that can be read. */
export async function readSnapshot(path: string): Promise<Snapshot | undefined> {
  try {
    const stats = await stat(path)
    // a pipe would be read for ever
    if (!stats.isFile() || stats.size > largestBytes) return undefined
    const snapshot: unknown = JSON.parse(await readFile(path, 'utf8'))
    return isSnapshot(snapshot) ? snapshot : undefined
  } catch {
    // no snapshot, or half a one: the centre or the local rules will do
    return undefined
  }
}

/** Writes beside and renames, so that a crash leaves the old one or the new one. */
export async function writeSnapshot(path: string, snapshot: Snapshot): Promise<void> {
  const beside = `${path}.${randomUUID()}.new`
  try {
    await writeFile(beside, JSON.stringify(snapshot), { mode: 0o600, flush: true })
    await rename(beside, path)
  } catch (error) {
    await rm(beside, { force: true })
    throw error
  }
}

function isSnapshot(value: unknown): value is Snapshot {
  if (typeof value !== 'object' || value === null) return false
  const { source, version, text } = value as Record<string, unknown>
  return typeof source === 'string' && typeof version === 'string' && typeof text === 'string'
}
