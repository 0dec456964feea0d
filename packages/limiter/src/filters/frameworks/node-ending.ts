import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import { GrpcOutcome } from '../../http/grpc-outcome.ts'
import { headerOf } from '../costs/observe-node.ts'
import { announcedBytes } from '../costs/peek-body.ts'

export type NodeRequest = IncomingMessage | Http2ServerRequest
export type NodeResponse = ServerResponse | Http2ServerResponse

/** An answer that the application breaks off has failed. */
const BROKEN = 500

/**
 * Follows who ends a response. The function that it returns is to be called when the response is over: it gives the status by which
 * rules judge the call, or undefined if the caller ended it.
 */
export function followEnding(request: NodeRequest, response: NodeResponse): () => number | undefined {
  const isBroken = 'stream' in response ? followStream(response) : followSocket(request as never, response as never)
  return () => {
    const isOfApplication = isBroken()
    if (isWhole(response)) return statusOf(response)
    return isOfApplication ? BROKEN : undefined
  }
}

/**
 * Returns a test that is true if the application has destroyed the response or its connection. A caller who leaves, stops reading or sends
 * garbage has the connection destroyed, too, so it must have sent all of its request, and must be waiting and reading.
 */
function followSocket(
  request: NodeRequest & { readonly complete: boolean },
  response: NodeResponse & { readonly writableNeedDrain: boolean },
): () => boolean {
  const { socket } = request
  const listeners = socket.listeners('error')
  const isWaiting = (): boolean => {
    if (socket.destroyed || socket.readableEnded || socket.writableEnded || socket.errored) return false
    if (response.writableEnded || response.writableNeedDrain) return false
    // Node's server takes its listener away when it cannot read what the caller sends
    return (request.complete || announcedBytes(request.headers) === 0) && isAmong(listeners, socket)
  }
  return firstBreak(isWaiting, [
    [response, 'destroy'],
    [socket, 'destroy'],
  ])
}

function followStream({ stream }: Extract<NodeResponse, { stream: unknown }>): () => boolean {
  const isWaiting = (): boolean => {
    // a response that the caller or the connection ends is closed by then
    if (stream.closed || stream.destroyed || stream.aborted || stream.session?.destroyed !== false) return false
    const { socket } = stream.session
    if (socket.destroyed || socket.readableEnded) return false
    return stream.state.remoteClose === 1 && !stream.writableEnded && !stream.writableNeedDrain
  }
  return firstBreak(isWaiting, [
    [stream, 'close'],
    [stream, 'destroy'],
  ])
}

/** True if the caller was waiting when the first of these methods was called. */
function firstBreak(isWaiting: () => boolean, methods: readonly (readonly [object, string])[]): () => boolean {
  let isBroken: boolean | undefined
  const stops = methods.map(([object, name]) =>
    noteBefore(object, name, error => {
      // a connection that fails is destroyed by Node, with the error of the system
      const isOfSystem = (error as NodeJS.ErrnoException | undefined)?.syscall !== undefined
      isBroken ??= !isOfSystem && isWaiting()
    }),
  )
  return () => {
    for (const stop of stops) stop()
    return isBroken === true
  }
}

type Method = (...args: unknown[]) => unknown

type Note = (argument: unknown) => void

const noted = new WeakMap<object, Map<string, Set<Note>>>()

/**
 * Calls `note` with the first argument before a method of one object is called; returns a function that stops it. A connection carries many calls, so its
 * method is replaced once, for all of them.
 */
function noteBefore(object: object, name: string, note: Note): () => void {
  const byName = noted.get(object) ?? new Map<string, Set<Note>>()
  noted.set(object, byName)
  const notes = byName.get(name) ?? replaced(object as Record<string, Method>, name)
  byName.set(name, notes)
  notes.add(note)
  return () => {
    notes.delete(note)
  }
}

function replaced(object: Record<string, Method>, name: string): Set<Note> {
  const notes = new Set<Note>()
  const method = object[name]!
  object[name] = function (this: unknown, ...args: unknown[]): unknown {
    for (const note of notes) note(args[0])
    return method.apply(this, args)
  }
  return notes
}

function isAmong(listeners: readonly unknown[], socket: Socket): boolean {
  const now: readonly unknown[] = socket.listeners('error')
  return listeners.every(one => now.includes(one))
}

function isWhole(response: NodeResponse): boolean {
  if (!('stream' in response)) return response.writableFinished
  // a stream that is reset is finished too, in its own view
  return response.writableEnded && response.stream.rstCode === 0
}

/** Answers of gRPC have the status 200, whatever came of the call. */
function statusOf(response: NodeResponse): number | undefined {
  const { statusCode } = response
  if (statusCode !== 200) return statusCode
  const sent = 'stream' in response ? response.stream.sentHeaders : undefined
  const header = (name: string): string | undefined =>
    sent === undefined ? headerOf(response, name) : textOf(sent[name])
  const outcome = GrpcOutcome.of(header)
  if (outcome === undefined) return statusCode
  const trailed = 'stream' in response ? textOf(response.stream.sentTrailers?.['grpc-status']) : trailerOf(response)
  if (trailed !== undefined) outcome.trailer('grpc-status', trailed)
  // gRPC-Web has its trailers in the body, which is not read here
  else if (header('grpc-status') === undefined && isWeb(header('content-type'))) return undefined
  return outcome.status
}

function isWeb(type: string | undefined): boolean {
  return type?.trim().toLowerCase().startsWith('application/grpc-web') === true
}

function trailerOf(response: NodeResponse): string | undefined {
  const { _trailer } = response as { _trailer?: string }
  return typeof _trailer === 'string' ? /^grpc-status:([^\r\n]*)/im.exec(_trailer)?.[1]?.trim() : undefined
}

function textOf(value: unknown): string | undefined {
  return value === undefined ? undefined : String(value)
}
