import { GrpcError, status } from '../grpc/grpc-error.ts'
import { ProtoReader, tagOf, wire } from '../protobuf/proto-reader.ts'

/** The fields of `envoy.service.auth.v3.CheckRequest` that Diana reads. */
export interface CheckRequest {
  /** The address of the proxy's caller. */
  readonly source: string | undefined
  readonly method: string
  readonly path: string
  readonly host: string
  readonly headers: Readonly<Record<string, string>>
  /** The values that the proxy's configuration adds. */
  readonly extensions: Readonly<Record<string, string>>
}

interface Fields {
  source: string | undefined
  method: string
  path: string
  host: string
  readonly headers: Record<string, string>
  readonly extensions: Record<string, string>
  entries: number
}

type Visit = (tag: number, reader: ProtoReader) => boolean

const maxEntries = 1024
const at = (field: number): number => tagOf(field, wire.bytes)

/** Reads a request; throws for what is none. */
export function readCheckRequest(message: Buffer): CheckRequest {
  const fields: Fields = {
    ...{ source: undefined, method: '', path: '', host: '', entries: 0 },
    headers: Object.create(null),
    extensions: Object.create(null),
  }
  visit(new ProtoReader(message), (tag, reader) => tag === at(1) && nested(reader, attributes(fields)))
  if (fields.method === '' || fields.path === '') {
    throw new GrpcError(status.invalidArgument, 'the request has no method or no path')
  }
  return fields
}

/** Reads AttributeContext: source = 1, request = 4, context_extensions = 10. */
function attributes(fields: Fields): Visit {
  return (tag, reader) => {
    if (tag === at(1)) return nested(reader, peer(fields))
    if (tag === at(4)) return nested(reader, (inner, request) => inner === at(2) && nested(request, http(fields)))
    return tag === at(10) && readEntry(reader, fields.extensions, fields)
  }
}

/** Reads Peer.address = 1, Address.socket_address = 1, SocketAddress.address = 2. */
function peer(fields: Fields): Visit {
  return (tag, reader) => {
    if (tag !== at(1)) return false
    return nested(reader, (address, socket) => {
      if (address !== at(1)) return false
      return nested(socket, (inner, last) => {
        if (inner !== at(2)) return false
        fields.source = last.text()
        return true
      })
    })
  }
}

/** Reads HttpRequest: method = 2, headers = 3, path = 4, host = 5, header_map = 13. */
function http(fields: Fields): Visit {
  return (tag, reader) => {
    if (tag === at(2)) fields.method = reader.text()
    else if (tag === at(3)) return readEntry(reader, fields.headers, fields)
    else if (tag === at(4)) fields.path = reader.text()
    else if (tag === at(5)) fields.host = reader.text()
    else if (tag === at(13)) {
      return nested(reader, (inner, map) => inner === at(1) && readHeaderValue(map, fields))
    } else return false
    return true
  }
}

function readEntry(reader: ProtoReader, map: Record<string, string>, fields: Fields): true {
  let key = ''
  let value = ''
  nested(reader, (tag, entry) => {
    if (tag === at(1)) key = entry.text()
    else if (tag === at(2)) value = entry.text()
    else return false
    return true
  })
  return add(map, key, value, fields)
}

/** Reads HeaderValue: key = 1, value = 2, raw_value = 3; a name may come several times. */
function readHeaderValue(reader: ProtoReader, fields: Fields): true {
  let key = ''
  let value = ''
  nested(reader, (tag, entry) => {
    if (tag === at(1)) key = entry.text()
    else if (tag === at(2)) value = entry.text()
    else if (tag === at(3)) value = entry.bytes().toString('latin1')
    else return false
    return true
  })
  const known = fields.headers[key.toLowerCase()]
  return add(fields.headers, key, known === undefined ? value : `${known}, ${value}`, fields)
}

function add(map: Record<string, string>, key: string, value: string, fields: Fields): true {
  if (++fields.entries > maxEntries) {
    throw new GrpcError(status.invalidArgument, `the request has more than ${maxEntries} headers`)
  }
  map[key.toLowerCase()] = value
  return true
}

function nested(reader: ProtoReader, handle: Visit): true {
  reader.message(inner => visit(inner, handle))
  return true
}

/** Offers each field to `handle`, and skips those that it does not take. */
function visit(reader: ProtoReader, handle: Visit): void {
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) if (!handle(tag, reader)) reader.skip(tag)
}
