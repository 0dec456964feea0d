import type { Shapes } from '../common/option-shape.ts'
import { basicHeader, below, parseAddress, showAddress } from './address.ts'
import { changes } from './client/changes.ts'
import { fetchText, parseReply, type Reply, statusError } from './client/fetch-text.ts'
import { pause } from './client/pause.ts'
import { decodeText } from './client/text.ts'
import { conflict, writeGuarded } from './client/write-guarded.ts'
import { credentialOptions, durationOption, nameOption } from './options.ts'
import type { Source, SourceDocument, SourceKind } from './source.ts'
import { sourceKind } from './source.ts'

const shape = (shapes: Shapes) =>
  shapes.array(shapes.object({ Value: shapes.string().nullable(), ModifyIndex: shapes.int().min(0) })).length(1)

/** A key of Consul's KV store, followed by blocking queries. */
export const consul: SourceKind = sourceKind({
  name: 'consul',
  options: kit => ({
    key: nameOption(kit).describe('the key that holds the document'),
    wait: durationOption(kit, '55s', { least: '100ms', most: '55s' }).describe(
      'how long a query may hang; default: 55s',
    ),
    ...credentialOptions(kit),
  }),
  create(address, options): Source {
    const { url, secrets, ...credentials } = parseAddress(address, options)
    const key = options.key.replace(/^\//, '')
    const name = `consul ${showAddress(url)} ${key}`
    const path = `/v1/kv/${key.split('/').map(encodeURIComponent).join('/')}`
    const token = credentials.token === undefined ? {} : { 'x-consul-token': credentials.token }
    const headers = { ...basicHeader(credentials), ...token }
    // Consul adds up to a sixteenth, so that a fleet does not come back all at once
    const request = { headers, waitMs: options.wait + options.wait / 16 }

    async function* readings(signal: AbortSignal): AsyncGenerator<SourceDocument> {
      let index = 0
      for (;;) {
        const at = below(url, path, { index: `${index}`, wait: `${options.wait}ms` })
        const reply = await fetchText(at, signal, request)
        yield await parseDocument(reply)
        const next = parseIndex(reply)
        // it goes down when the store was restored from a backup; from 0 on the answer comes at once
        index = next < index ? 0 : next
        await pause(100, signal)
      }
    }
    const write = (text: string, base: SourceDocument, signal: AbortSignal) =>
      writeGuarded(text, { name, secrets }, async () => {
        const present = await fetchText(below(url, path), signal, { headers })
        const { text: known, version } = await parseDocument(present)
        if (known !== base.text) throw conflict(name)
        // 0 is for a key that is not there
        const cas = present.status === 404 ? '0' : version
        const reply = await fetchText(below(url, path, { cas }), signal, { method: 'PUT', headers, body: text })
        if (reply.status !== 200) throw statusError(reply)
        if (reply.text.trim() !== 'true') throw conflict(name)
        return (await parseDocument(await fetchText(below(url, path), signal, { headers }))).version
      })
    return { name, watch: signal => changes(readings, signal, { name, secrets }), write }
  },
})

async function parseDocument(reply: Reply): Promise<SourceDocument> {
  if (reply.status === 404) return { text: '', version: `${parseIndex(reply)}`, isMissing: true }
  if (reply.status !== 200) throw statusError(reply)
  const { Value, ModifyIndex } = (await parseReply(reply.text, shape))[0]!
  return { text: decodeText(Buffer.from(Value ?? '', 'base64')), version: `${ModifyIndex}` }
}

function parseIndex({ headers }: Reply): number {
  const text = headers.get('x-consul-index') ?? ''
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new Error('answered without X-Consul-Index; check that the address is that of Consul')
}
