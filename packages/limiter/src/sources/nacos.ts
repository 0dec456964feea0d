import { nodeCrypto } from '../common/node-modules.ts'
import type { Shapes } from '../common/option-shape.ts'
import { parseAddress, showAddress } from './address.ts'
import { changes } from './client/changes.ts'
import { parseReply, type Reply, statusError } from './client/fetch-text.ts'
import { createNacosSession } from './client/nacos-session.ts'
import { pause } from './client/pause.ts'
import { credentialOptions, durationOption, nameOption } from './options.ts'
import type { Source, SourceDocument, SourceKind } from './source.ts'
import { sourceKind } from './source.ts'

const FIELD = '\u0002'
const RECORD = '\u0001'
const NOT_FOUND = 20004
const v3Shape = (shapes: Shapes) =>
  shapes.object({
    code: shapes.int(),
    data: shapes.object({ content: shapes.string(), md5: shapes.string() }).nullish(),
  })

/** A configuration of Nacos, followed by the long poll of its first API, or polled if there is none. */
export const nacos: SourceKind = sourceKind({
  name: 'nacos',
  options: kit => ({
    dataId: nameOption(kit),
    group: nameOption(kit).default('DEFAULT_GROUP'),
    tenant: nameOption(kit).optional().describe('the id of a namespace; default: the public one'),
    wait: durationOption(kit, '30s', { least: '1s', most: '55s' }).describe('how long a poll may hang; default: 30s'),
    interval: durationOption(kit, '5s', { least: '100ms', most: '1h' }).describe(
      'how often to ask without a poll; default: 5s',
    ),
    ...credentialOptions(kit),
  }),
  create(address, options): Source {
    const at = parseAddress(address, options)
    const { dataId, group, tenant, wait, interval } = options
    const name = `nacos ${showAddress(at.url)} ${[tenant, group, dataId].filter(Boolean).join(' ')}`

    const session = createNacosSession(at)
    const v1 = { dataId, group, ...(tenant === undefined ? {} : { tenant }) }
    const v3 = { dataId, groupName: group, ...(tenant === undefined ? {} : { namespaceId: tenant }) }

    /** Polls until the document has changed, or until this server turns out to have no long poll. */
    async function listen(md5: string, signal: AbortSignal): Promise<'changed' | 'gone'> {
      const probe = [dataId, group, md5, ...(tenant === undefined ? [] : [tenant])].join(FIELD) + RECORD
      // shorter waits than 10 s are held for 10 s
      const request = { headers: { 'Long-Pulling-Timeout': `${wait}` }, waitMs: Math.max(10_000, wait) }
      for (;;) {
        const reply = await session.post('/v1/cs/configs/listener', { 'Listening-Configs': probe }, signal, request)
        if (isGone(reply)) return 'gone'
        if (reply.status !== 200) throw statusError(reply)
        await pause(100, signal)
        const changed = reply.text.trim()
        if (changed.startsWith(`${encodeURIComponent(dataId)}%02`)) return 'changed'
        if (changed !== '') throw new Error('answered a poll in a shape that Nacos does not use; check the address')
      }
    }

    async function* readings(signal: AbortSignal): AsyncGenerator<SourceDocument> {
      for (;;) {
        const reply = await session.get('/v1/cs/configs', v1, signal)
        if (isGone(reply) && !reply.text.includes('config data not exist')) break
        const document = parseV1(reply)
        yield document
        if ((await listen(document.version, signal)) === 'gone') break
      }
      for (;;) {
        yield await parseV3(await session.get('/v3/client/cs/config', v3, signal))
        await pause(interval, signal)
      }
    }
    return { name, watch: signal => changes(readings, signal, { name, secrets: at.secrets }) }
  },
})

function isGone({ status }: Reply): boolean {
  return status === 404 || status === 410
}

function parseV1(reply: Reply): SourceDocument {
  if (reply.status === 404) return { text: '', version: '', isMissing: true }
  if (reply.status !== 200) throw statusError(reply)
  const md5 = reply.headers.get('content-md5') ?? nodeCrypto().createHash('md5').update(reply.text).digest('hex')
  return { text: reply.text, version: md5 }
}

async function parseV3(reply: Reply): Promise<SourceDocument> {
  if (reply.status !== 200 && reply.status !== 404) throw statusError(reply)
  const { code, data } = await parseReply(reply.text, v3Shape)
  if (code === NOT_FOUND) return { text: '', version: '', isMissing: true }
  if (code !== 0 || !data) throw new Error(`answered with the code ${code}; check the names of the configuration`)
  return { text: data.content, version: data.md5 }
}
