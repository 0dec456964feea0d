import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { type Asked, createHttpDouble, type FakeHttp, Held, send } from './fake-http.ts'

export interface FakeNacos extends FakeHttp {
  put(text: string): void
  remove(): void
  /** Ends every session, as a restart of the server does. */
  expireTokens(): void
  /** Each request so far, as `GET /path`. */
  readonly requests: readonly string[]
}

export interface NacosOptions {
  readonly dataId: string
  readonly group: string
  readonly tenant?: string
  /** Nacos holds a poll for its time less 500 ms, and for 10 s at least; this shortens that. */
  readonly holdMs?: number
  /** What the server does not support: all of the first API, or its poll. */
  readonly without?: 'v1' | 'listener'
  readonly user?: { readonly username: string; readonly password: string }
}

const md5Of = (text: string | undefined) => (text === undefined ? '' : createHash('md5').update(text).digest('hex'))

/** Nacos: reading and long poll of its first API, reading of its third, login; as documented. */
export async function createNacosDouble(options: NacosOptions): Promise<FakeNacos> {
  const { dataId, group, tenant = '', without, user } = options
  const held = new Held()
  const requests: string[] = []
  const tokens = new Set<string>()
  let text: string | undefined

  const login = ({ body }: Asked, response: ServerResponse) => {
    const form = new URLSearchParams(body)
    if (form.get('username') !== user?.username || form.get('password') !== user?.password) {
      return send(response, 403, 'unknown user!')
    }
    const accessToken = `token-${requests.length}`
    tokens.add(accessToken)
    send(response, 200, JSON.stringify({ accessToken, tokenTtl: 18_000, globalAdmin: true, username: user?.username }))
  }

  const readV1 = ({ url }: Asked, response: ServerResponse) => {
    const { searchParams: query } = url
    const isOurs =
      query.get('dataId') === dataId && query.get('group') === group && (query.get('tenant') ?? '') === tenant
    if (!isOurs || text === undefined) return send(response, 404, 'config data not exist')
    send(response, 200, text, { 'content-md5': md5Of(text), 'config-type': 'yaml' })
  }

  const readV3 = ({ url }: Asked, response: ServerResponse) => {
    const { searchParams: query } = url
    const isOurs = query.get('dataId') === dataId && query.get('groupName') === group
    const result =
      isOurs && text !== undefined && (query.get('namespaceId') ?? '') === tenant
        ? { code: 0, message: 'success', data: { content: text, md5: md5Of(text), contentType: 'yaml' } }
        : { code: 20004, message: 'resource not found', data: null }
    send(response, 200, JSON.stringify(result))
  }

  const listen = ({ request, body }: Asked, response: ServerResponse) => {
    const probe = new URLSearchParams(body).get('Listening-Configs') ?? ''
    const [first, ...others] = probe.split('\u0001')
    const [askedId, askedGroup, md5, askedTenant = ''] = first?.split('\u0002') ?? []
    const isForm = request.headers['content-type'] === 'application/x-www-form-urlencoded'
    if (!isForm || others.join('|') !== '' || others.length !== 1 || md5 === undefined)
      return send(response, 400, 'invalid probeModify')
    const isOurs = askedId === dataId && askedGroup === group && askedTenant === tenant
    const answer = () => {
      const fields = tenant === '' ? [dataId, group] : [dataId, group, tenant]
      const isChanged = isOurs && md5 !== md5Of(text)
      send(response, 200, isChanged ? `${encodeURIComponent(`${fields.join('\u0002')}\u0001`)}\n` : '')
    }
    const timeout = request.headers['long-pulling-timeout']
    if (timeout === undefined || (isOurs && md5 !== md5Of(text))) return answer()
    held.hold(response, options.holdMs ?? Math.max(10_000, Number(timeout) - 500), answer)
  }

  const http = await createHttpDouble((asked, response) => {
    const { request, url } = asked
    const route = `${request.method} ${url.pathname}`
    requests.push(route)
    if (without === 'v1' && url.pathname.startsWith('/nacos/v1/')) return send(response, 410, '{"code":410}')
    if (route === 'POST /nacos/v1/auth/login' || route === 'POST /nacos/v3/auth/user/login')
      return login(asked, response)
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? ''
    if (user && !tokens.has(token)) return send(response, 403, 'token invalid!')
    if (route === 'GET /nacos/v1/cs/configs') return readV1(asked, response)
    if (route === 'POST /nacos/v1/cs/configs/listener' && without !== 'listener') return listen(asked, response)
    if (route === 'GET /nacos/v3/client/cs/config') return readV3(asked, response)
    send(response, 404, '{"status":404,"error":"Not Found"}')
  })

  const change = (to: string | undefined) => {
    const isSame = to === text
    text = to
    if (!isSame) held.release()
  }
  return { ...http, requests, put: change, remove: () => change(undefined), expireTokens: () => tokens.clear() }
}
