import { slowReaders } from './slow-readers.mjs'

/** Hundreds of calls of a large answer on one connection, whose caller leaves. */
export const pipelinedThenGone = {
  name: 'pipelined, then gone',
  connections: 8,
  answers: slowReaders.answers,
  steps: index => [
    { write: 'GET /large?answer=0 HTTP/1.1\r\nHost: fuzz.example\r\n\r\n', times: 300 },
    { pause: 100 },
    index % 2 === 0 ? 'reset' : 'close',
  ],
}
