import { expect, it } from 'vitest'
import { takeInheritedSockets } from './inherited-sockets.ts'

it.each<[string, NodeJS.ProcessEnv, object]>([
  ['nothing', {}, {}],
  ['one socket of systemd', { LISTEN_FDS: '1', LISTEN_PID: '7' }, { traffic: 3 }],
  ['one with a name', { LISTEN_FDS: '1', LISTEN_PID: '7', LISTEN_FDNAMES: 'diana.socket' }, { traffic: 3 }],
  ['two in order', { LISTEN_FDS: '2', LISTEN_PID: '7', LISTEN_FDNAMES: 'http:admin' }, { traffic: 3, admin: 4 }],
  ['two in the other order', { LISTEN_FDS: '2', LISTEN_PID: '7', LISTEN_FDNAMES: 'admin:x' }, { traffic: 4, admin: 3 }],
  ['the admin socket alone', { LISTEN_FDS: '1', LISTEN_PID: '7', LISTEN_FDNAMES: 'admin' }, { admin: 3 }],
  ['sockets of a parent', { LISTEN_FDS: '1', LISTEN_PID: '6' }, {}],
  ['sockets that name no process', { LISTEN_FDS: '1' }, {}],
  ['a number that is none', { LISTEN_FDS: 'x', LISTEN_PID: '7' }, {}],
  ['those of a predecessor', { DIANA_SOCKETS: 'traffic:admin' }, { traffic: 3, admin: 4, fromPredecessor: true }],
  ['that of a predecessor without admin', { DIANA_SOCKETS: 'traffic' }, { traffic: 3, fromPredecessor: true }],
  [
    'those of a predecessor before those of systemd, which were its own',
    { DIANA_SOCKETS: 'traffic', LISTEN_FDS: '2', LISTEN_PID: '7' },
    { traffic: 3, fromPredecessor: true },
  ],
])('a process that inherits %s finds it, and its children do not', (_, given, sockets) => {
  const env = { ...given, OTHER: 'stays' }
  const found = takeInheritedSockets(env, 7)
  expect({ ...found }).toEqual({ traffic: undefined, admin: undefined, fromPredecessor: false, ...sockets })
  expect(env).toEqual({ OTHER: 'stays' })
})
