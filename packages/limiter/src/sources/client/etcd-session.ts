import type { Shapes } from '../../common/option-shape.ts'
import { type Address, below } from '../address.ts'
import { fetchText, parseReply, type Reply, statusError } from './fetch-text.ts'

/** Calls etcd's JSON gateway as one user and logs in again when the token has expired. */
export interface EtcdSession {
  ask(path: string, body: unknown, signal: AbortSignal): Promise<string>
  /** Returns the headers for a call that directly follows one of `ask`. */
  headers(): Record<string, string>
}

const loginShape = (shapes: Shapes) => shapes.object({ token: shapes.string().min(1).max(8192) })
const OUTWORN = /invalid auth token|revision of auth store is old/

export function createEtcdSession({ url, username, password }: Address): EtcdSession {
  let token: string | undefined
  const headers = () => (token === undefined ? {} : { authorization: token })

  async function post(path: string, body: unknown, signal: AbortSignal): Promise<Reply> {
    return fetchText(below(url, path), signal, { method: 'POST', headers: headers(), body: JSON.stringify(body) })
  }

  async function authenticate(signal: AbortSignal): Promise<void> {
    token = undefined
    const reply = await post('/v3/auth/authenticate', { name: username, password: password ?? '' }, signal)
    if (reply.status !== 200) throw etcdError(reply)
    token = (await parseReply(reply.text, loginShape)).token
  }

  async function ask(path: string, body: unknown, signal: AbortSignal): Promise<string> {
    if (username !== undefined && token === undefined) await authenticate(signal)
    let reply = await post(path, body, signal)
    if (username !== undefined && (reply.status === 401 || OUTWORN.test(reply.text))) {
      await authenticate(signal)
      reply = await post(path, body, signal)
    }
    if (reply.status !== 200) throw etcdError(reply)
    return reply.text
  }
  return { ask, headers }
}

function etcdError(reply: Reply): Error {
  const said = /etcdserver: [\w :,-]{1,200}/.exec(reply.text)?.[0]
  return said === undefined ? statusError(reply) : new Error(`refused (HTTP ${reply.status}): ${said}`)
}
