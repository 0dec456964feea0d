import type { ProtoWriter } from './proto-writer.ts'

/** Writes the fields of a `google.protobuf.Struct`; values are texts, numbers, booleans, lists and maps of them. */
export function writeStruct(writer: ProtoWriter, values: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined) continue
    writer.message(1, () => {
      writer.text(1, key)
      writer.message(2, () => writeValue(writer, value))
    })
  }
}

function writeValue(writer: ProtoWriter, value: unknown): void {
  if (typeof value === 'number') writer.double(2, value)
  // in a oneof also the empty text is written
  else if (typeof value === 'string') writer.chosenText(3, value)
  else if (typeof value === 'boolean') writer.chosenNumber(4, value ? 1 : 0)
  else if (Array.isArray(value)) {
    writer.message(6, () => {
      for (const item of value) writer.message(1, () => writeValue(writer, item))
    })
  } else if (typeof value === 'object' && value !== null) {
    writer.message(5, () => writeStruct(writer, value as Record<string, unknown>))
  } else writer.chosenNumber(1, 0)
}
