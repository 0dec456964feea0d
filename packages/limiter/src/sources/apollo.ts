import { nodeCrypto } from '../common/node-modules.ts'
import type { Shapes } from '../common/option-shape.ts'
import type * as z from '../shapes/index.ts'
import { basicHeader, below, parseAddress, showAddress } from './address.ts'
import { changes } from './client/changes.ts'
import { fetchText, parseReply, type Reply, statusError } from './client/fetch-text.ts'
import { pause } from './client/pause.ts'
import { credentialOptions, nameOption } from './options.ts'
import type { Source, SourceDocument, SourceKind } from './source.ts'
import { sourceKind } from './source.ts'

// the server keeps a poll open for 60 s, or up to 90 s if configured so
const HOLD_MS = 90_000

const configShape = (shapes: Shapes) =>
  shapes.object({ configurations: shapes.record(shapes.string(), shapes.string()), releaseKey: shapes.string() })
const noticeShape = (shapes: Shapes) =>
  shapes.array(shapes.object({ notificationId: shapes.int(), messages: shapes.unknown() })).min(1)
type Notice = z.output<ReturnType<typeof noticeShape>>[number]

/** A namespace of Apollo, followed by its notifications. */
export const apollo: SourceKind = sourceKind({
  name: 'apollo',
  options: kit => ({
    appId: nameOption(kit),
    cluster: nameOption(kit).default('default'),
    namespace: nameOption(kit).default('application').describe('such as rules.yaml; default: application'),
    key: nameOption(kit).default('content').describe('the item that holds the document; default: content'),
    ...credentialOptions(kit),
  }),
  create(address, options): Source {
    const { url, secrets, ...credentials } = parseAddress(address, options)
    const { appId, cluster, key } = options
    const namespaceName = options.namespace.replace(/\.properties$/, '')
    const name = `apollo ${showAddress(url)} ${appId} ${cluster} ${namespaceName}`
    const path = `/configs/${[appId, cluster, namespaceName].map(encodeURIComponent).join('/')}`

    async function get(at: URL, signal: AbortSignal, waitMs = 0): Promise<Reply> {
      const { token } = credentials
      const headers = token === undefined ? basicHeader(credentials) : sign(at, appId, token)
      return fetchText(at, signal, { headers, waitMs })
    }

    async function read(notice: Notice | undefined, signal: AbortSignal): Promise<SourceDocument> {
      // without a releaseKey the answer is always whole; with one it may be a list of differences
      const messages = notice?.messages === undefined ? undefined : { messages: JSON.stringify(notice.messages) }
      const reply = await get(below(url, path, messages), signal)
      if (reply.status === 404) return { text: '', version: '', isMissing: true }
      if (reply.status !== 200) throw statusError(reply)
      const { configurations, releaseKey } = await parseReply(reply.text, configShape)
      const text = configurations[key]
      return text === undefined ? { text: '', version: releaseKey, isMissing: true } : { text, version: releaseKey }
    }

    async function poll(notificationId: number, signal: AbortSignal): Promise<Notice | undefined> {
      const notifications = JSON.stringify([{ namespaceName, notificationId }])
      const reply = await get(below(url, '/notifications/v2', { appId, cluster, notifications }), signal, HOLD_MS)
      if (reply.status === 304) return undefined
      if (reply.status !== 200) throw statusError(reply)
      return (await parseReply(reply.text, noticeShape))[0]
    }

    async function* readings(signal: AbortSignal): AsyncGenerator<SourceDocument> {
      let notice: Notice | undefined
      for (;;) {
        yield await read(notice, signal)
        const known = notice?.notificationId ?? -1
        do {
          notice = (await poll(known, signal)) ?? notice
          await pause(100, signal)
        } while ((notice?.notificationId ?? -1) === known)
      }
    }
    return { name, watch: signal => changes(readings, signal, { name, secrets }) }
  },
})

function sign({ pathname, search }: URL, appId: string, accessKey: string): Record<string, string> {
  const timestamp = `${Date.now()}`
  const signature = nodeCrypto()
    .createHmac('sha1', accessKey)
    .update(`${timestamp}\n${pathname}${search}`)
    .digest('base64')
  return { timestamp, authorization: `Apollo ${appId}:${signature}` }
}
