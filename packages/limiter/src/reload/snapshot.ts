import type { Stats } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { nodeCrypto } from '../common/node-modules.ts'
import { fileFault, readRegularFile } from '../common/regular-file.ts'

/** The last document of a config center, kept on disk for a start without it. */
export interface Snapshot {
  readonly source: string
  readonly version: string
  readonly text: string
}

// a document has at most 4 MiB, and what JSON escapes takes more
const mostBytes = 32 * 1024 * 1024
const writableByOthers = 0o022

const ownRemedy = 'it must be a regular file of this user or root that nobody else may write; remove it'

/** Reads the snapshot, if there is one that can be read; `onIgnored` gets the reason why an existing one is not used, and the remedy. */
export async function readSnapshot(
  path: string,
  onIgnored: (reason: string, remedy: string) => void = () => {},
): Promise<Snapshot | undefined> {
  try {
    const bytes = await readRegularFile(path, { mostBytes, noLinks: true, accept: assertOwn })
    const snapshot = parseSnapshot(bytes.toString())
    if (!snapshot)
      onIgnored('it is torn or no snapshot', 'remove it; the next document of the config center is written there')
    return snapshot
  } catch (error) {
    const trouble = fileFault(error)
    if (trouble !== 'ENOENT') onIgnored(trouble, ownRemedy)
    return undefined
  }
}

function parseSnapshot(text: string): Snapshot | undefined {
  try {
    const snapshot: unknown = JSON.parse(text)
    return isSnapshot(snapshot) ? snapshot : undefined
  } catch {
    return undefined
  }
}

/** Removes the snapshot, since the config center has no document any more: a start without it begins with the local rules. */
export async function removeSnapshot(path: string): Promise<void> {
  await rm(path, { force: true })
}

/** Rules that another user could have written are not used. */
function assertOwn({ uid, mode }: Stats): void {
  const own = process.geteuid?.()
  if (own !== undefined && uid !== own && uid !== 0) throw new Error('it belongs to another user')
  if (own !== undefined && (mode & writableByOthers) !== 0) throw new Error('others may write it')
}

/** Writes a new file beside it and renames that, so that a crash leaves the old one or the new one, and no link is followed. */
export async function writeSnapshot(path: string, snapshot: Snapshot): Promise<void> {
  const beside = `${path}.${nodeCrypto().randomUUID()}.new`
  try {
    await writeFile(beside, JSON.stringify(snapshot), { mode: 0o600, flag: 'wx', flush: true })
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
