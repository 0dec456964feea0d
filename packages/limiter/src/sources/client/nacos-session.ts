import type { Shapes } from '../../common/option-shape.ts'
import { type Address, below } from '../address.ts'
import { fetchText, parseReply, type Reply, statusError, type TextRequest } from './fetch-text.ts'

/** Calls Nacos as one user and logs in again when the token has expired. */
export interface NacosSession {
  get(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Reply>
  post(
    path: string,
    form: Readonly<Record<string, string>>,
    signal: AbortSignal,
    request: { readonly headers: Readonly<Record<string, string>>; readonly waitMs: number },
  ): Promise<Reply>
}

const loginShape = (shapes: Shapes) => shapes.object({ accessToken: shapes.string().min(1).max(8192) })
const loginPaths = ['/v1/auth/login', '/v3/auth/user/login']

export function createNacosSession(address: Address): NacosSession {
  const url = new URL(address.url)
  if (url.pathname === '/') url.pathname = '/nacos'
  const { username, password } = address
  let { token } = address

  async function login(signal: AbortSignal): Promise<void> {
    const body = new URLSearchParams({ username: username ?? '', password: password ?? '' })
    for (const path of loginPaths) {
      const reply = await fetchText(below(url, path), signal, formOf(body))
      if (reply.status === 404 || reply.status === 410) continue
      if (reply.status !== 200) throw statusError(reply)
      token = (await parseReply(reply.text, loginShape)).accessToken
      return
    }
    throw new Error('has no login at this address; check that the address is that of Nacos')
  }

  async function ask(
    at: URL,
    signal: AbortSignal,
    request: TextRequest & { readonly waitMs?: number },
  ): Promise<Reply> {
    const send = () => {
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
      return fetchText(at, signal, { ...request, headers: { ...request.headers, ...authorization } })
    }
    if (username === undefined) return send()
    if (token === undefined) await login(signal)
    const reply = await send()
    if (reply.status !== 401 && reply.status !== 403) return reply
    await login(signal)
    return send()
  }

  return {
    get: (path, query, signal) => ask(below(url, path, query), signal, {}),
    post: (path, form, signal, { headers, waitMs }) => {
      const { headers: type, ...request } = formOf(new URLSearchParams(form))
      return ask(below(url, path), signal, { ...request, headers: { ...type, ...headers }, waitMs })
    },
  }
}

function formOf(form: URLSearchParams): TextRequest {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form.toString(),
  }
}
