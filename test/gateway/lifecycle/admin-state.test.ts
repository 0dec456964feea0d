import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { build, type Program, startDiana, startProgram } from '../../helpers/program-rig.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

const rig = new GatewayRig()
const token = 'correct-horse-battery-staple'
beforeAll(build)
afterEach(() => rig.close())

const adminOf = (program: Program): string => /Dashboard: (\S+)/.exec(program.said())![1]!
const statusOf = async (url: string, account: string): Promise<number> => {
  const { statusCode, body } = await request(url, { headers: { 'x-account': account } })
  await body.dump()
  return statusCode
}
async function ask(program: Program, path: string, user: string, body?: object) {
  await expect.poll(() => program.said()).toContain('Dashboard: ')
  const reply = await request(`${adminOf(program)}/api/v1/${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { 'x-user': user, 'x-diana-request': '1', ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: reply.statusCode, body: (await reply.body.json()) as Record<string, unknown> }
}
async function end(program: Program): Promise<void> {
  program.child.kill('SIGTERM')
  if (program.child.exitCode === null) await once(program.child, 'exit')
}

const identity = {
  trustedProxies: '127.0.0.1',
  headers: { user: 'x-user' },
  roles: { operator: 'user:ann', viewer: '*' },
}

test.each([['2'], ['1']])(
  'with %s workers, a block by hand and who set it are known after a restart',
  async workers => {
    const { url: to } = await rig.serve()
    const admin = { token, identity, state: 'state' }
    const rules = [{ id: 'each', by: 'account', limit: '1000/s', block: 'manual' }]
    const document = { identify: { account: ['header:x-account'] }, rules, gateway: { admin, routes: [{ to }] } }
    const args = ['--admin-port', '0', '--workers', workers]
    const first = await startProgram(rig, document, args)
    expect((await ask(first, 'blocks', 'bob', { rule: 'each', key: 'eve', for: '10m' })).status).toBe(403)
    expect((await ask(first, 'blocks', 'ann', { rule: 'each', key: 'eve', for: '10m' })).status).toBe(200)
    expect([await statusOf(first.url, 'eve'), await statusOf(first.url, 'joe')]).toEqual([503, 200])
    await end(first)
    const second = await startDiana(['--config', first.config, ...args])
    rig.later(() => {
      second.child.kill('SIGKILL')
      return second.ended
    })
    // each connection may lead to another worker
    const statuses = await Promise.all(Array.from({ length: 20 }, () => statusOf(second.url, 'eve')))
    expect(new Set(statuses)).toEqual(new Set([503]))
    expect(await statusOf(second.url, 'joe')).toBe(200)
    const { body } = await ask(second, 'audit', 'ann')
    expect(body.changes).toMatchObject([{ who: 'ann', via: 'proxy', operation: 'postBlocks' }])
    expect(body.refused).toMatchObject([{ who: 'bob', refused: 'read only' }])
    expect(readFileSync(join(first.folder, 'state/audit.jsonl'), 'utf8').trim().split('\n')).toHaveLength(2)
    await end(second)
  },
)
