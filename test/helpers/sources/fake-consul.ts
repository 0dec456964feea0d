import type { ServerResponse } from 'node:http'
import { type Asked, createHttpDouble, type FakeHttp, Held, send } from './fake-http.ts'

export interface FakeConsul extends FakeHttp {
  put(key: string, text: string): void
  remove(key: string): void
  /** As after a restore from a backup: the index starts again at 1. */
  restore(): void
  /** Wakes every query without a change, as Consul may. */
  wake(): void
  /** Each query so far, as `index=…&wait=…`. */
  readonly queries: readonly string[]
}

/** Consul's KV reads, writes and blocking queries, as its API documents them. */
export async function createConsulDouble(options: { readonly token?: string } = {}): Promise<FakeConsul> {
  const entries = new Map<string, { readonly text: string; readonly index: number }>()
  const held = new Held()
  const queries: string[] = []
  let tableIndex = 10

  const read = (key: string, response: ServerResponse) => {
    const entry = entries.get(key)
    // an entry's own index, or that of the whole table where there is none
    const headers = { 'x-consul-index': `${entry?.index ?? tableIndex}`, 'content-type': 'application/json' }
    if (!entry) return send(response, 404, '', headers)
    const Value = entry.text === '' ? null : Buffer.from(entry.text).toString('base64')
    const CreateIndex = 1
    const body = { LockIndex: 0, Key: key, Flags: 0, Value, CreateIndex, ModifyIndex: entry.index }
    send(response, 200, JSON.stringify([body]), headers)
  }

  const http = await createHttpDouble(({ request, url, body }: Asked, response) => {
    queries.push(url.search.slice(1))
    const { token } = options
    if (token !== undefined && request.headers['x-consul-token'] !== token) {
      return send(response, 403, 'Permission denied: token with AccessorID lacks permission')
    }
    const key = /^\/v1\/kv\/(.+)$/.exec(decodeURIComponent(url.pathname))?.[1]
    if (request.method === 'PUT' && key !== undefined) {
      const cas = Number(url.searchParams.get('cas'))
      if ((entries.get(key)?.index ?? 0) !== cas) return send(response, 200, 'false')
      change(() => entries.set(key, { text: body, index: tableIndex }))
      return send(response, 200, 'true')
    }
    if (request.method !== 'GET' || key === undefined) return send(response, 404, '404 page not found')
    const index = Number(url.searchParams.get('index') ?? 0)
    const current = entries.get(key)?.index ?? tableIndex
    if (index === 0 || index !== current) return read(key, response)
    const waitMs = Number(/^(\d+)ms$/.exec(url.searchParams.get('wait') ?? '')?.[1] ?? 300_000)
    held.hold(response, waitMs + (waitMs / 16) * Math.random(), () => read(key, response))
  })

  const change = (changing: () => void) => {
    tableIndex += 1
    changing()
    held.release()
  }
  return {
    ...http,
    queries,
    put: (key, text) => change(() => entries.set(key, { text, index: tableIndex })),
    remove: key => change(() => entries.delete(key)),
    wake: () => held.release(),
    restore() {
      tableIndex = 1
      for (const [key, { text }] of entries) entries.set(key, { text, index: 1 })
      held.release()
    },
  }
}
