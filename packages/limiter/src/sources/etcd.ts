import type { Shapes } from '../common/option-shape.ts'
import type * as z from '../shapes/index.ts'
import { below, parseAddress, showAddress } from './address.ts'
import { changes } from './client/changes.ts'
import { createEtcdSession } from './client/etcd-session.ts'
import { fetchLines } from './client/fetch-lines.ts'
import { parseReply } from './client/fetch-text.ts'
import { pause } from './client/pause.ts'
import { decodeText } from './client/text.ts'
import { conflict, writeGuarded } from './client/write-guarded.ts'
import { credentialOptions, durationOption, nameOption } from './options.ts'
import type { Source, SourceDocument, SourceKind } from './source.ts'
import { sourceKind } from './source.ts'

// numbers of 64 bits come as text, and what is empty or zero is left out
const revision = (shapes: Shapes) => shapes.string().regex(/^\d{1,19}$/)
const header = (shapes: Shapes) => shapes.object({ revision: revision(shapes) })
const kv = (shapes: Shapes) => shapes.object({ value: shapes.string().default(''), mod_revision: revision(shapes) })
const rangeShape = (shapes: Shapes) =>
  shapes.object({ header: header(shapes), kvs: shapes.array(kv(shapes)).max(1).default([]) })
const txnShape = (shapes: Shapes) =>
  shapes.object({ header: header(shapes), succeeded: shapes.boolean().default(false) })
const eventShape = (shapes: Shapes) =>
  shapes.object({ type: shapes.enum(['PUT', 'DELETE']).default('PUT'), kv: kv(shapes) })
const watchShape = (shapes: Shapes) =>
  shapes.object({
    result: shapes
      .object({
        canceled: shapes.boolean().default(false),
        compact_revision: revision(shapes).optional(),
        cancel_reason: shapes.string().default('no reason given'),
        events: shapes.array(eventShape(shapes)).default([]),
      })
      .optional(),
    error: shapes.object({ message: shapes.string() }).optional(),
  })

/** A key of etcd v3, read and then watched through its JSON gateway. */
export const etcd: SourceKind = sourceKind({
  name: 'etcd',
  options: kit => ({
    key: nameOption(kit).describe('the key that holds the document'),
    // fetch gives up a stream that is silent for five minutes
    interval: durationOption(kit, '60s', { least: '100ms', most: '4m' }).describe(
      'how often to read anyway; default: 60s',
    ),
    username: credentialOptions(kit).username,
    password: credentialOptions(kit).password,
  }),
  create(address, options): Source {
    const at = parseAddress(address, options)
    const name = `etcd ${showAddress(at.url)} ${options.key}`
    const session = createEtcdSession(at)
    const key = Buffer.from(options.key).toString('base64')

    async function* readings(signal: AbortSignal): AsyncGenerator<SourceDocument> {
      for (;;) {
        const { header, kvs } = await parseReply(await session.ask('/v3/kv/range', { key }, signal), rangeShape)
        yield kvs[0] ? toDocument(kvs[0]) : { text: '', version: '0', isMissing: true }
        yield* events(BigInt(header.revision) + 1n, signal)
        await pause(100, signal)
      }
    }

    /** Yields the changes from a revision on; returns when the document must be read again. */
    async function* events(from: bigint, signal: AbortSignal): AsyncGenerator<SourceDocument> {
      const body = JSON.stringify({ create_request: { key, start_revision: `${from}`, progress_notify: true } })
      const request = { method: 'POST', headers: session.headers(), body, lastsMs: options.interval } as const
      for await (const line of fetchLines(below(at.url, '/v3/watch'), signal, request)) {
        const { result, error } = await parseReply(line, watchShape)
        if (!result) throw new Error(`ended the watch: ${error?.message ?? 'no reason given'}`)
        for (const { type, kv } of result.events) {
          yield type === 'PUT' ? toDocument(kv) : { text: '', version: kv.mod_revision, isMissing: true }
        }
        if (!result.canceled) continue
        // the revision to begin from was compacted away, so the changes since are only found by reading
        if (result.compact_revision !== undefined) return
        throw new Error(`ended the watch: ${result.cancel_reason}`)
      }
    }
    const write = (text: string, base: SourceDocument, signal: AbortSignal) =>
      writeGuarded(text, { name, secrets: at.secrets }, async () => {
        const value = Buffer.from(text).toString('base64')
        // a key that is not there has the revision 0
        const compare = [{ key, target: 'MOD', result: 'EQUAL', mod_revision: base.version }]
        const body = { compare, success: [{ request_put: { key, value } }] }
        const { succeeded, header } = await parseReply(await session.ask('/v3/kv/txn', body, signal), txnShape)
        if (!succeeded) throw conflict(name)
        return header.revision
      })
    return { name, watch: signal => changes(readings, signal, { name, secrets: at.secrets }), write }
  },
})

function toDocument({ value, mod_revision }: z.output<ReturnType<typeof kv>>): SourceDocument {
  return { text: decodeText(Buffer.from(value, 'base64')), version: mod_revision }
}
