import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { type Asked, createHttpDouble, type FakeHttp, Held, send } from './fake-http.ts'

export interface FakeApollo extends FakeHttp {
  put(key: string, text: string): void
  remove(): void
  /** Each request so far, path and query. */
  readonly requests: readonly string[]
}

export interface ApolloOptions {
  readonly appId: string
  readonly cluster: string
  readonly namespace: string
  readonly accessKey?: string
  /** Apollo holds a poll for 60 s; this shortens that. */
  readonly holdMs?: number
}

/** Apollo's config service: reading, notifications v2 and access keys, as its documents and sources say. */
export async function createApolloDouble(options: ApolloOptions): Promise<FakeApollo> {
  const { appId, cluster, namespace, accessKey, holdMs = 60_000 } = options
  const held = new Held()
  const requests: string[] = []
  let release: { readonly releaseKey: string; readonly configurations: Record<string, string> } | undefined
  let lastId = 100

  const isSigned = ({ request }: Asked) => {
    const { timestamp, authorization } = request.headers
    if (typeof timestamp !== 'string' || Math.abs(Date.now() - Number(timestamp)) > 60_000) return false
    const signature = createHmac('sha1', accessKey ?? '')
      .update(`${timestamp}\n${request.url}`)
      .digest('base64')
    return authorization === `Apollo ${appId}:${signature}`
  }

  const read = ({ url }: Asked, response: ServerResponse) => {
    if (!release) return send(response, 404, '{"status":404,"message":"Could not load configurations"}')
    if (url.searchParams.get('releaseKey') === release.releaseKey) return send(response, 304)
    send(response, 200, JSON.stringify({ appId, cluster, namespaceName: namespace, ...release }))
  }

  const notify = ({ url }: Asked, response: ServerResponse) => {
    const { searchParams: query } = url
    const [asked] = JSON.parse(query.get('notifications') ?? '[]') as {
      namespaceName: string
      notificationId: number
    }[]
    const isOurs = query.get('appId') === appId && query.get('cluster') === cluster
    if (!asked) return send(response, 400, '{"status":400,"message":"Invalid format of notifications"}')
    const answer = () => {
      const details = { [`${appId}+${cluster}+${namespace}`]: lastId }
      const notice = { namespaceName: namespace, notificationId: lastId, messages: { details } }
      send(response, 200, JSON.stringify([notice]))
    }
    const isNews = isOurs && asked.namespaceName === namespace && lastId > 100 && asked.notificationId !== lastId
    if (isNews) return answer()
    held.hold(response, holdMs, released => (released ? answer() : send(response, 304)))
  }

  const http = await createHttpDouble((asked, response) => {
    const { request, url } = asked
    requests.push(request.url ?? '')
    if (accessKey !== undefined && !isSigned(asked))
      return send(response, 401, '{"status":401,"message":"Unauthorized"}')
    if (decodeURIComponent(url.pathname) === `/configs/${appId}/${cluster}/${namespace}`) return read(asked, response)
    if (url.pathname === '/notifications/v2') return notify(asked, response)
    send(response, 404, '{"status":404}')
  })

  const change = (next: Record<string, string> | undefined) => {
    lastId += 1
    release = next && { releaseKey: `20261115-${lastId}`, configurations: next }
    held.release()
  }
  return { ...http, requests, put: (key, text) => change({ [key]: text }), remove: () => change(undefined) }
}
