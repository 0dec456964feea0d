import { accessSync, constants, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { DianaError, type Limiter } from 'diana-limiter'
import { fileFault } from 'diana-limiter/gateway'
import { z } from 'diana-limiter/schema'
import { Audit } from '../audit.ts'
import { Blocks, type KeptBlock, mostBlocks } from '../blocks.ts'
import { type EarlierVersion, EarlierVersions } from '../earlier-versions.ts'
import { idOf } from '../operations/callers.ts'
import { AuditFile } from './audit-file.ts'
import { StateFile } from './state-file.ts'

export interface AdminStateOptions {
  /** The folder `gateway.admin.state`; left out, everything but the list of changes is in memory only. */
  readonly state?: string | undefined
  /** The file `gateway.admin.audit`. */
  readonly audit?: string | undefined
  /** The folder that relative paths are seen from. */
  readonly folder?: string | undefined
  readonly onWarning?: ((warning: string) => void) | undefined
}

const mostBlockBytes = 32 * 1024 * 1024
const mostVersionBytes = 64 * 1024 * 1024

/**
 * Keeps what operators have done that must survive a restart: blocks by hand of rules that this machine counts, earlier versions of
 * documents, and the list of changes. If the folder cannot be used, everything works on in memory.
 */
export class AdminState {
  readonly blocks: Blocks
  readonly versions: EarlierVersions
  readonly #options: AdminStateOptions
  readonly #folder: string | undefined
  readonly #files: StateFile[] = []
  #keptBlocks: readonly KeptBlock[]
  #audit: Audit = new Audit()
  #auditFile: AuditFile | undefined

  /** Reads what was kept; blocks are in force again after `restore`. */
  constructor(options: AdminStateOptions = {}) {
    this.#options = options
    const { state, folder = '.' } = options
    this.#folder = state === undefined ? undefined : resolve(folder, state)
    if (this.#folder !== undefined) this.#prepare(this.#folder)
    const blocks = this.#file('blocks.json', mostBlockBytes)
    const versions = this.#file('versions.json', mostVersionBytes)
    this.blocks = new Blocks(kept => blocks?.write(() => ({ blocks: kept() })))
    this.versions = new EarlierVersions(parseVersions(versions?.read()), all => {
      versions?.write(() => ({ versions: all() }))
    })
    this.#keptBlocks = parseBlocks(blocks?.read())
  }

  get audit(): Audit {
    return this.#audit
  }

  /** Puts the blocks of an earlier run in force, each for the time that is left; before calls come. */
  restore(limiter: Limiter, now: number = Date.now()): void {
    restoreBlocks(this.#keptBlocks, this.blocks, limiter, now)
    this.#keptBlocks = []
  }

  /** Goes on with the list of changes of an earlier run; throws if the file that the settings name cannot be written. */
  async openAudit(): Promise<void> {
    const { audit, folder = '.' } = this.#options
    const path = audit === undefined ? this.#folder && join(this.#folder, 'audit.jsonl') : resolve(folder, audit)
    if (path === undefined) return
    try {
      const file = await AuditFile.open(path, trouble => this.#warn(trouble))
      this.#auditFile = file
      this.#audit = new Audit(file.earlier, entry => file.write(entry))
    } catch (error) {
      const reason = `cannot be written (${fileFault(error)})`
      if (audit === undefined) this.#warn(`${path} ${reason}: the list of changes is kept in memory only`)
      else {
        const remedy = 'create its folder, allow Diana to write there, or name another file'
        throw new DianaError('BAD_RULES', `gateway.admin.audit ${reason}: ${remedy}`)
      }
    }
  }

  /** Goes on with a new file if the list of changes was renamed. */
  async reopen(): Promise<void> {
    await this.#auditFile?.reopen()
  }

  async close(): Promise<void> {
    await Promise.all([...this.#files.map(file => file.close()), this.#auditFile?.close()])
  }

  #prepare(folder: string): void {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    } catch (error) {
      this.#warn(
        `gateway.admin.state cannot be written (${fileFault(error)}): blocks by hand and earlier versions are lost at a restart; allow Diana to write to ${folder}`,
      )
    }
  }

  #file(name: string, mostBytes: number): StateFile | undefined {
    if (this.#folder === undefined) return undefined
    const file = new StateFile(join(this.#folder, name), { mostBytes, onTrouble: trouble => this.#warn(trouble) })
    this.#files.push(file)
    return file
  }

  #warn(warning: string): void {
    this.#options.onWarning?.(warning)
  }
}

const blockShape = z.object({
  rule: z.string().min(1).max(80),
  by: z.array(z.string().max(256)).max(64),
  key: z.string().max(16_384),
  since: z.number().min(0),
  until: z.number().min(0),
})

/** Returns the blocks in a file; whatever is not one is left out. */
function parseBlocks(value: unknown): KeptBlock[] {
  const { blocks } = (value ?? {}) as { readonly blocks?: unknown }
  if (!Array.isArray(blocks)) return []
  return blocks.slice(-mostBlocks).flatMap(one => blockShape.safeParse(one).data ?? [])
}

/** Puts blocks in force that have not ended and whose rules still count by the same. */
function restoreBlocks(kept: readonly KeptBlock[], blocks: Blocks, limiter: Limiter, now: number): void {
  const rules = new Map(limiter.rules.map(rule => [rule.id, rule]))
  for (const block of kept) {
    const { rule: id, by, key, until } = block
    const rule = rules.get(id)
    const leftMs = Math.ceil(until - now)
    if (leftMs < 1 || rule?.count !== 'local' || rule.block === undefined || !isDeepStrictEqual(rule.by, by)) continue
    blocks.add({ ...block, id: idOf(block), isKept: true })
    // at once if this process counts; a block that cannot be set is none
    limiter.block(id, { key }, leftMs).catch(() => blocks.remove(idOf(block)))
  }
}

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
function parseVersions(value: unknown): EarlierVersion[] {
  const { versions } = (value ?? {}) as { readonly versions?: unknown }
  if (!Array.isArray(versions)) return []
  return versions.flatMap(one => versionShape.safeParse(one).data ?? [])
}
