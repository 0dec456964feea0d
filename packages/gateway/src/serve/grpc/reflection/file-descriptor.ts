import { ProtoWriter } from '../../protobuf/proto-writer.ts'

/** A `.proto` file, as far as its messages are read or written here. */
export interface ProtoFile {
  readonly name: string
  readonly package: string
  readonly dependencies?: readonly string[] | undefined
  readonly messages?: readonly ProtoMessage[] | undefined
  readonly enums?: readonly ProtoEnum[] | undefined
  readonly services?: readonly ProtoService[] | undefined
}

export interface ProtoMessage {
  readonly name: string
  /** Such as `domain = 1 string`, `descriptors = 2 repeated .package.Message`, `unit = 2 enum .package.Enum`. */
  readonly fields?: readonly string[] | undefined
  readonly messages?: readonly ProtoMessage[] | undefined
  readonly enums?: readonly ProtoEnum[] | undefined
  /** A group of fields that exclude each other, and their names. */
  readonly oneof?: { readonly name: string; readonly fields: readonly string[] } | undefined
  /** True if it is the entry of a map. */
  readonly isMapEntry?: boolean | undefined
}

export interface ProtoEnum {
  readonly name: string
  /** Their numbers are their places. */
  readonly values: readonly string[]
}

export interface ProtoService {
  readonly name: string
  /** Such as `Check .package.Request .package.Response`; streams are `stream .package.Request`. */
  readonly methods: readonly string[]
}

const types: Readonly<Record<string, number>> = {
  ...{ double: 1, int64: 3, uint64: 4, int32: 5, bool: 8, string: 9, bytes: 12, uint32: 13 },
  ...{ message: 11, enum: 14 },
}
const optional = 1
const repeated = 3

/** Writes a `google.protobuf.FileDescriptorProto`. */
export function writeFileDescriptor(file: ProtoFile): Buffer {
  const writer = new ProtoWriter().begin()
  writer.text(1, file.name).text(2, file.package)
  for (const dependency of file.dependencies ?? []) writer.text(3, dependency)
  for (const message of file.messages ?? []) writer.message(4, () => writeMessage(writer, message))
  for (const one of file.enums ?? []) writer.message(5, () => writeEnum(writer, one))
  for (const service of file.services ?? []) writer.message(6, () => writeService(writer, service))
  return writer.text(12, 'proto3').end()
}

function writeMessage(writer: ProtoWriter, message: ProtoMessage): void {
  const { name, fields = [], messages = [], enums = [], oneof, isMapEntry = false } = message
  writer.text(1, name)
  for (const field of fields) writer.message(2, () => writeField(writer, field, oneof))
  for (const nested of messages) writer.message(3, () => writeMessage(writer, nested))
  for (const nested of enums) writer.message(4, () => writeEnum(writer, nested))
  if (isMapEntry) writer.message(7, () => void writer.number(7, 1))
  if (oneof) writer.message(8, () => void writer.text(1, oneof.name))
}

function writeField(writer: ProtoWriter, field: string, oneof: ProtoMessage['oneof']): void {
  const words = field.split(' ').filter(word => word !== '=')
  const [name, number, ...rest] = words as [string, string, ...string[]]
  const isRepeated = rest[0] === 'repeated'
  const [kind, of] = (isRepeated ? rest.slice(1) : rest) as [string, string | undefined]
  const typeName = kind.startsWith('.') ? kind : of
  writer.text(1, name).number(3, Number(number))
  writer.number(4, isRepeated ? repeated : optional)
  writer.number(5, types[kind.startsWith('.') ? 'message' : kind]!)
  if (typeName !== undefined) writer.text(6, typeName)
  if (oneof?.fields.includes(name)) writer.chosenNumber(9, 0)
  writer.text(10, inCamelCase(name))
}

function writeEnum(writer: ProtoWriter, { name, values }: ProtoEnum): void {
  writer.text(1, name)
  for (const [number, value] of values.entries()) {
    writer.message(2, () => void writer.text(1, value).chosenNumber(2, number))
  }
}

function writeService(writer: ProtoWriter, { name, methods }: ProtoService): void {
  writer.text(1, name)
  for (const method of methods) {
    const [methodName, ...words] = method.split(' ') as [string, ...string[]]
    const isStreamOf = (type: string): number => (words[words.indexOf(type) - 1] === 'stream' ? 1 : 0)
    const [request, response] = words.filter(word => word !== 'stream') as [string, string]
    writer.message(2, () => {
      writer.text(1, methodName).text(2, request).text(3, response)
      writer.number(5, isStreamOf(request)).number(6, isStreamOf(response))
    })
  }
}

function inCamelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
