import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { build } from '../helpers/program-rig.ts'
import { startRedis } from '../helpers/servers/redis-server.ts'
import { Authority } from '../helpers/tls/authority.ts'
import { startServe } from './serve-rig.ts'

const run = promisify(execFile)
const rig = new GatewayRig()
const password = 'a password of 16 bytes or more'
const python = '/usr/bin/python3'
const hasRedisPy = existsSync(python) && isDone(() => execFileSync(python, ['-c', 'import redis'], { stdio: 'ignore' }))

const rules = [
  { id: 'account', by: 'account', limit: '5/h', match: 'none' },
  { id: 'pair', by: ['account', 'ip'], limit: '5/h', match: 'none' },
  { id: 'total', limit: '10/h', match: 'none' },
]

let open: { host: string; port: number }
let closed: { host: string; port: number }

beforeAll(async () => {
  build()
  const [one, other] = await Promise.all([
    startServe(rig, { rules, serve: { redis: { port: 0 } } }),
    startServe(rig, {
      rules,
      serve: {
        redis: {
          port: 0,
          users: [{ password }, { name: 'shop', password: `${password}!`, rules: ['account'] }],
        },
      },
    }),
  ])
  open = addressOf(one.redis!)
  closed = addressOf(other.redis!)
})
afterAll(() => rig.close())

function isDone(work: () => unknown): boolean {
  try {
    work()
    return true
  } catch {
    return false
  }
}

function addressOf(address: string) {
  const [host, port] = address.split(':')
  return { host: host!, port: Number(port) }
}

/** A connection that is written to and read by hand. */
async function raw({ host, port }: { host: string; port: number }) {
  const socket: Socket = connect(port, host).on('error', () => {})
  rig.later(() => socket.destroy())
  await once(socket, 'connect')
  let text = ''
  socket.on('data', piece => {
    text += piece
  })
  const said = async (isThere: (text: string) => boolean) => {
    for (let tries = 0; tries < 500 && !isThere(text); tries++) await pause(10)
    return text
  }
  return { socket, said, ended: new Promise<void>(resolve => socket.once('close', () => resolve())) }
}

describe('clients of Redis ask diana serve', () => {
  it('redis-cli reads the five numbers of redis-cell', async () => {
    const cli = (...words: string[]) => run('redis-cli', ['-p', String(open.port), '--csv', ...words])
    expect((await cli('CL.THROTTLE', 'cli', '15', '30', '60')).stdout).toBe('0,16,15,-1,2\n')
    expect((await cli('cl.throttle', 'cli', '15', '30', '60', '15')).stdout).toBe('0,16,0,-1,32\n')
    expect((await cli('CL.THROTTLE', 'cli', '15', '30', '60')).stdout).toMatch(/^1,16,0,[12],3[12]\n$/)
    expect((await cli('DIANA.CHECK', 'account', 'cli')).stdout).toBe('0,5,4,-1,3600\n')
    expect((await cli('DIANA.TAKE', 'account', 'cli', '1', 'total', '1')).stdout).toMatch(/^0,5,3,-1,3600,NULL\n$/)
    expect((await cli('DIANA.CHECK', 'acount', 'cli')).stdout).toContain('did you mean \\"account\\"')
    expect((await run('redis-cli', ['-3', '-p', String(open.port), 'HELLO', '3'])).stdout).toContain('diana')
  })

  it('ioredis pipelines a thousand calls, of which as many pass as the limit says', async () => {
    const client = new Redis({ ...open })
    rig.later(() => client.disconnect())
    const pipeline = client.pipeline()
    for (let call = 0; call < 1000; call++) pipeline.call('CL.THROTTLE', 'io', '99', '100', '3600')
    const answers = (await pipeline.exec())!.map(([, numbers]) => numbers as number[])
    expect(answers.map(([limited]) => limited)).toEqual([...Array(100).fill(0), ...Array(900).fill(1)])
    expect(await client.call('DIANA.CHECK', 'pair', 'io', '203.0.113.1', '2')).toEqual([0, 5, 3, -1, 3600])
    expect(await client.call('DIANA.RESET', 'pair', 'io', '203.0.113.1')).toBe('OK')
    expect(await client.call('DIANA.PEEK', 'pair', 'io', '203.0.113.1')).toMatchObject({ 0: 0, 1: 5, 2: 5 })
    await expect(client.get('a')).rejects.toThrow("unknown command 'get'")
  })

  it.each([2, 3] as const)('node-redis asks in version %i of the protocol', async version => {
    const client = createClient({ socket: open, RESP: version })
    await client.connect()
    rig.later(() => client.destroy())
    expect(await client.sendCommand(['CL.THROTTLE', `node ${version}`, '1', '1', '60'])).toEqual([0, 2, 1, -1, 60])
    expect(await client.ping()).toBe('PONG')
    expect(await client.sendCommand(['COMMAND', 'COUNT'])).toBeGreaterThan(10)
  })

  it.runIf(hasRedisPy)('redis-py asks with a pool and a pipeline', async () => {
    const program = `
import redis, sys
client = redis.Redis(port=int(sys.argv[1]))
print(client.ping(), client.execute_command('CL.THROTTLE', 'py', 1, 1, 60))
with client.pipeline(transaction=False) as pipe:
    for _ in range(3): pipe.execute_command('DIANA.CHECK', 'account', 'py')
    print([answer[0] for answer in pipe.execute()])
print(client.execute_command('DIANA.CHECK', 'account', 'ü', 5), client.execute_command('DIANA.CHECK', 'account', 'ü'))`
    const { stdout } = await run(python, ['-c', program, String(open.port)])
    expect(stdout.split('\n')).toEqual([
      'True [0, 2, 1, -1, 60]',
      '[0, 0, 0]',
      '[0, 5, 0, -1, 3600] [1, 5, 0, 3600, 3600]',
      '',
    ])
  })

  it('redis-benchmark gets an answer to every command', async () => {
    const words = ['-p', String(open.port), '-n', '5000', '-c', '20', '-P', '16', '-r', '100', '-q']
    const { stdout } = await run('redis-benchmark', [...words, 'CL.THROTTLE', 'b:__rand_int__', '9', '10', '60'])
    expect(stdout).toContain('requests per second')
  })

  it('a key of a command and a caller of a request are one caller', async () => {
    const program = await startServe(rig, {
      identify: { account: ['header:x-account-id'] },
      rules: [{ ...rules[0], match: {} }],
      serve: { redis: { port: 0 } },
    })
    const client = new Redis({ ...addressOf(program.redis!) })
    rig.later(() => client.disconnect())
    for (let call = 0; call < 3; call++) await client.call('DIANA.CHECK', 'account', 'ann')
    const check = () =>
      fetch(`${program.url}/check`, {
        headers: { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/', 'x-account-id': 'ann' },
      })
    expect([(await check()).status, (await check()).status, (await check()).status]).toEqual([200, 200, 503])
  })

  it('two servers on one Redis share the limits that commands bring along, and answers keep their order', async () => {
    const redis = await startRedis()
    rig.later(() => redis.close())
    const document = {
      store: { redis: `redis://${redis.authority}`, timeout: '2s' },
      rules: rules.map(rule => ({ ...rule, lease: 'off' })),
      serve: { redis: { port: 0 }, deadline: '2s' },
    }
    const servers = await Promise.all([startServe(rig, document), startServe(rig, document)])
    const clients = servers.map(one => new Redis({ ...addressOf(one.redis!) }))
    for (const client of clients) rig.later(() => client.disconnect())
    const asks = clients.flatMap(client =>
      Array.from({ length: 40 }, () => client.call('CL.THROTTLE', 'both', '49', '50', '3600') as Promise<number[]>),
    )
    const answers = await Promise.all(asks)
    expect(answers.filter(([limited]) => limited === 0)).toHaveLength(50)
    // what is decided at once waits behind what Redis is asked about
    const mixed = clients[0]!.pipeline()
    mixed
      .call('DIANA.CHECK', 'account', 'order')
      .call('PING', 'a')
      .call('DIANA.CHECK', 'account', 'order')
      .call('PING', 'b')
    expect((await mixed.exec())!.map(([, answer]) => answer)).toEqual([
      [0, 5, 4, -1, 3600],
      'a',
      [0, 5, 3, -1, 3600],
      'b',
    ])
  })
})

describe('users of the Redis port', () => {
  it('a client says who it is before anything else, and may use its rules alone', async () => {
    const { socket, said } = await raw(closed)
    socket.write('PING\r\nCL.THROTTLE a 1 1 1\r\nDIANA.CHECK account a\r\n')
    expect(await said(text => text.split('\r\n').length > 3)).toBe('-NOAUTH Authentication required.\r\n'.repeat(3))
    const shop = new Redis({ ...closed, username: 'shop', password: `${password}!` })
    rig.later(() => shop.disconnect())
    expect(await shop.call('DIANA.CHECK', 'account', 'a')).toEqual([0, 5, 4, -1, 3600])
    await expect(shop.call('DIANA.CHECK', 'total')).rejects.toThrow('NOPERM')
    await expect(shop.call('DIANA.TAKE', 'account', 'a', '1', 'total', '1')).rejects.toThrow('NOPERM')
    await expect(shop.call('DIANA.RESET', 'total')).rejects.toThrow('NOPERM')
    await expect(shop.call('CL.THROTTLE', 'a', '1', '1', '1')).rejects.toThrow('NOPERM')
    const all = createClient({ socket: closed, password, RESP: 3 })
    await all.connect()
    rig.later(() => all.destroy())
    expect(await all.sendCommand(['CL.THROTTLE', 'a', '1', '1', '60'])).toEqual([0, 2, 1, -1, 60])
    expect(await all.sendCommand(['RESET'])).toBe('RESET')
    await expect(all.sendCommand(['PING'])).rejects.toThrow('NOAUTH')
  })

  it.each([
    ['AUTH wrong', 5],
    ['AUTH nobody wrong', 5],
    ['HELLO 3 AUTH default wrong', 5],
  ])('after wrong passwords by %s the connection is closed', async (line, tries) => {
    const { socket, said, ended } = await raw(closed)
    socket.write(`${line}\r\n`.repeat(tries + 3))
    await ended
    expect((await said(() => true)).split('\r\n').filter(one => one.startsWith('-WRONGPASS'))).toHaveLength(tries)
  })

  it('a client that has not said who it is may send little', async () => {
    for (const text of ['*11\r\n', '*2\r\n$4\r\nAUTH\r\n$1025\r\n', `AUTH ${'a'.repeat(5000)}`]) {
      const { socket, said, ended } = await raw(closed)
      socket.write(text)
      await ended
      expect(await said(() => true)).toContain('-ERR Protocol error')
    }
  })

  it('the port speaks TLS with the certificates of the section', async () => {
    const authority = new Authority()
    authority.issue('server', { names: 'DNS:localhost' })
    const tls = { cert: authority.path('server.pem'), key: authority.path('server.key') }
    const program = await startServe(rig, { rules, serve: { redis: { port: 0 }, tls } })
    const { host, port } = addressOf(program.redis!)
    const socket = connectTls({ host, port, rejectUnauthorized: false })
    rig.later(() => socket.destroy())
    await once(socket, 'secureConnect')
    socket.write('PING\r\n')
    expect(String((await once(socket, 'data'))[0])).toBe('+PONG\r\n')
  })
})

describe('hostile clients of the Redis port', () => {
  it('an unreadable command gets an error, ends its own connection, and no other', async () => {
    const other = await raw(open)
    for (const bytes of [
      '*1\r\n$x\r\n',
      '*2000\r\n',
      '"\r\n',
      '\x16\x03\x01\x02\x00\x01\r\n*1\r\n:\r\n',
      'a'.repeat(70_000),
    ]) {
      const { socket, said, ended } = await raw(open)
      socket.write(Buffer.from(bytes, 'latin1'))
      await ended
      expect(await said(() => true)).toContain('-ERR ')
    }
    other.socket.write('PING\r\n')
    expect(await other.said(text => text !== '')).toBe('+PONG\r\n')
  })

  it('an error never has the line ends of a command', async () => {
    const { socket, said } = await raw(open)
    socket.write('*1\r\n$9\r\nA\r\n+OK\r\nB\r\nPING\r\n')
    const text = await said(all => all.includes('PONG'))
    expect(text.split('\r\n')).toHaveLength(3)
  })
})
