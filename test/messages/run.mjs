// npm run long -- messages: what limits on messages cost, and a flood beside other connections.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createGateway } from 'diana-gateway'
import { createLimiter } from 'diana-limiter'
import { limitEvents, limitMessages } from 'diana-limiter/messages'
import { Server } from 'socket.io'
import { io } from 'socket.io-client'
import { WebSocket, WebSocketServer } from 'ws'

const [role, kind] = process.argv.slice(2)
const ROUNDS = 7
const MESSAGES = 40_000
const AT_ONCE = 100
const flooding = { id: 'chat', match: { websocket: 'messages' }, by: 'header:x-user', limit: '100/s', whenFull: 'drop' }
const FLOOD_MS = 4000

if (role === 'server') await serve(kind)
else if (role === '--help')
  console.log('npm run long -- messages: the CPU of a ws echo with limits beside the bare one, and floods')
else await main()

/** A server in a process of its own, so that its processor time is known. */
async function serve(kind) {
  const isLimited = kind !== 'bare'
  const limit = isLimited && (await limiterFor(kind))
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false })
  await once(server, 'listening')
  server.on('connection', (socket, request) => {
    if (limit) limit(socket, request)
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
  })
  process.on('message', () => process.send({ cpu: process.cpuUsage() }))
  process.send({ port: server.address().port })
}

async function limiterFor() {
  const rule = { id: 'chat', match: { websocket: 'messages' }, by: 'ip', limit: '1000000/s' }
  return limitMessages(await createLimiter({ rules: [rule] }))
}

async function main() {
  const [bare, limited] = [await start('bare'), await start('limited')]
  const best = { bare: Number.POSITIVE_INFINITY, limited: Number.POSITIVE_INFINITY }
  for (let round = 0; round < ROUNDS; round++) {
    best.bare = Math.min(best.bare, await cpuOf(bare))
    best.limited = Math.min(best.limited, await cpuOf(limited))
  }
  const ratio = best.limited / best.bare
  const us = value => `${(value / MESSAGES).toFixed(2)} µs`
  console.log(`a message of ws: ${us(best.bare)} bare, ${us(best.limited)} limited: ${ratio.toFixed(2)} × (mark: 1.20)`)
  if (ratio > 1.2) process.exitCode = 1
  for (const one of [bare, limited]) one.child.kill()
  for (const [name, flood] of [
    ['ws', floodWs],
    ['Socket.IO', floodSocketIo],
    ['the gateway', floodGateway],
  ]) {
    const { alone, beside, dropped } = await flood()
    console.log(
      `${name}: others wait ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside a flood (p99); ${dropped} messages dropped`,
    )
  }
  process.exit()
}

async function start(kind) {
  const child = spawn(process.execPath, [import.meta.filename, 'server', kind], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const [{ port }] = await once(child, 'message')
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false })
  await once(socket, 'open')
  return { child, socket }
}

/** The processor time of a server for many messages, in microseconds. */
async function cpuOf({ child, socket }) {
  const before = await usage(child)
  let [sent, got] = [0, 0]
  await new Promise(resolve => {
    const heard = () => {
      got++
      if (sent < MESSAGES) {
        sent++
        socket.send('a message of some words')
      } else if (got === MESSAGES) {
        socket.off('message', heard)
        resolve()
      }
    }
    socket.on('message', heard)
    for (; sent < AT_ONCE; sent++) socket.send('a message of some words')
  })
  return (await usage(child)) - before
}

async function usage(child) {
  child.send('usage')
  const [{ cpu }] = await once(child, 'message')
  return cpu.user + cpu.system
}

async function floodWs() {
  const limiter = await createLimiter({ rules: [flooding] })
  let dropped = 0
  const limit = limitMessages(limiter, { onRefused: () => dropped++ })
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  server.on('connection', (socket, request) => {
    limit(socket, request)
    socket.on('message', data => socket.send(data))
  })
  const open = async user => {
    const socket = new WebSocket(`ws://127.0.0.1:${server.address().port}`, { headers: { 'x-user': user } })
    await once(socket, 'open')
    return { socket, say: () => socket.send('x'), heard: () => once(socket, 'message') }
  }
  const figures = await compare(open)
  server.close()
  return { ...figures, dropped }
}

async function floodSocketIo() {
  const limiter = await createLimiter({ rules: [flooding] })
  let dropped = 0
  const http = createServer()
  const server = new Server(http)
  const limit = limitEvents(limiter, { onRefused: () => dropped++ })
  server.on('connection', socket => {
    limit(socket)
    socket.on('say', text => socket.emit('heard', text))
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const open = async user => {
    const socket = io(`http://127.0.0.1:${http.address().port}`, {
      transports: ['websocket'],
      forceNew: true,
      extraHeaders: { 'x-user': user },
    })
    await new Promise(resolve => socket.once('connect', resolve))
    return {
      socket,
      say: () => socket.emit('say', 'x'),
      heard: () => new Promise(resolve => socket.once('heard', resolve)),
    }
  }
  const figures = await compare(open)
  server.close()
  return { ...figures, dropped }
}

async function floodGateway() {
  const service = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(service, 'listening')
  let passed = 0
  service.on('connection', socket => {
    socket.on('message', data => {
      passed++
      socket.send(data)
    })
  })
  const limiter = await createLimiter({ rules: [flooding] })
  const gateway = await createGateway({ limiter, upstream: `http://127.0.0.1:${service.address().port}` })
  const url = (await gateway.listen({ port: 0, host: '127.0.0.1' })).replace('http', 'ws')
  let sent = 0
  const open = async user => {
    const socket = new WebSocket(url, { headers: { 'x-user': user }, perMessageDeflate: false })
    await once(socket, 'open')
    const say = () => {
      sent++
      socket.send('x')
    }
    return { socket, say, heard: () => once(socket, 'message') }
  }
  const figures = await compare(open)
  const dropped = sent - passed
  await gateway.close()
  await limiter.close()
  service.close()
  return { ...figures, dropped }
}

/** How long the answer to a message takes, alone and beside a connection that sends as many as it can. */
async function compare(open) {
  const [calm, loud] = [await open('calm'), await open('loud')]
  const alone = await latency(calm)
  let isOver = false
  const shout = () => {
    for (let i = 0; i < 50; i++) loud.say()
    if (!isOver) setTimeout(shout, 5)
  }
  shout()
  const beside = await latency(calm)
  isOver = true
  loud.socket.close()
  calm.socket.close()
  return { alone, beside }
}

async function latency({ say, heard }) {
  const taken = []
  for (const end = performance.now() + FLOOD_MS / 2; performance.now() < end; ) {
    const begin = performance.now()
    const answer = heard()
    say()
    await answer
    taken.push(performance.now() - begin)
    await new Promise(resolve => setTimeout(resolve, 15))
  }
  return taken.sort((one, other) => one - other)[Math.floor(taken.length * 0.99)]
}
