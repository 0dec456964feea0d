import type { ProtoFile, ProtoMessage } from './file-descriptor.ts'

const rateLimit = '.envoy.service.ratelimit.v3.RateLimitResponse'
const common = '.envoy.extensions.common.ratelimit.v3.RateLimitDescriptor'
const auth = '.envoy.service.auth.v3'
const core = '.envoy.config.core.v3'
const struct = '.google.protobuf.Struct'

const textMap = (name: string): ProtoMessage => ({
  ...{ name, isMapEntry: true },
  fields: ['key = 1 string', 'value = 2 string'],
})

const wellKnown: readonly ProtoFile[] = [
  {
    ...{ name: 'google/protobuf/duration.proto', package: 'google.protobuf' },
    messages: [{ name: 'Duration', fields: ['seconds = 1 int64', 'nanos = 2 int32'] }],
  },
  {
    ...{ name: 'google/protobuf/wrappers.proto', package: 'google.protobuf' },
    messages: [{ name: 'UInt64Value', fields: ['value = 1 uint64'] }],
  },
  {
    ...{ name: 'google/protobuf/struct.proto', package: 'google.protobuf' },
    enums: [{ name: 'NullValue', values: ['NULL_VALUE'] }],
    messages: [
      {
        ...{ name: 'Struct', fields: [`fields = 1 repeated ${struct}.FieldsEntry`] },
        messages: [
          {
            ...{ name: 'FieldsEntry', isMapEntry: true },
            fields: ['key = 1 string', 'value = 2 .google.protobuf.Value'],
          },
        ],
      },
      {
        name: 'Value',
        fields: [
          'null_value = 1 enum .google.protobuf.NullValue',
          ...['number_value = 2 double', 'string_value = 3 string', 'bool_value = 4 bool'],
          ...[`struct_value = 5 ${struct}`, 'list_value = 6 .google.protobuf.ListValue'],
        ],
        oneof: {
          name: 'kind',
          fields: ['null_value', 'number_value', 'string_value', 'bool_value', 'struct_value', 'list_value'],
        },
      },
      { name: 'ListValue', fields: ['values = 1 repeated .google.protobuf.Value'] },
    ],
  },
]

const envoy: readonly ProtoFile[] = [
  {
    ...{ name: 'envoy/type/v3/ratelimit_unit.proto', package: 'envoy.type.v3' },
    enums: [{ name: 'RateLimitUnit', values: ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR'] }],
  },
  {
    ...{ name: 'envoy/config/core/v3/base.proto', package: 'envoy.config.core.v3' },
    messages: [
      { name: 'HeaderValue', fields: ['key = 1 string', 'value = 2 string', 'raw_value = 3 bytes'] },
      { name: 'HeaderMap', fields: [`headers = 1 repeated ${core}.HeaderValue`] },
      {
        name: 'HeaderValueOption',
        fields: [
          `header = 1 ${core}.HeaderValue`,
          `append_action = 3 enum ${core}.HeaderValueOption.HeaderAppendAction`,
        ],
        enums: [
          {
            name: 'HeaderAppendAction',
            values: ['APPEND_IF_EXISTS_OR_ADD', 'ADD_IF_ABSENT', 'OVERWRITE_IF_EXISTS_OR_ADD'],
          },
        ],
      },
      { name: 'SocketAddress', fields: ['address = 2 string', 'port_value = 3 uint32'] },
      { name: 'Address', fields: [`socket_address = 1 ${core}.SocketAddress`] },
    ],
  },
  {
    name: 'envoy/extensions/common/ratelimit/v3/ratelimit.proto',
    package: 'envoy.extensions.common.ratelimit.v3',
    dependencies: ['envoy/type/v3/ratelimit_unit.proto', 'google/protobuf/wrappers.proto'],
    messages: [
      {
        name: 'RateLimitDescriptor',
        fields: [
          ...[`entries = 1 repeated ${common}.Entry`, `limit = 2 ${common}.RateLimitOverride`],
          ...['hits_addend = 3 .google.protobuf.UInt64Value', 'is_negative_hits = 4 bool'],
        ],
        messages: [
          { name: 'Entry', fields: ['key = 1 string', 'value = 2 string'] },
          {
            name: 'RateLimitOverride',
            fields: ['requests_per_unit = 1 uint32', 'unit = 2 enum .envoy.type.v3.RateLimitUnit'],
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'envoy/service/ratelimit/v3/rls.proto', package: 'envoy.service.ratelimit.v3' },
    dependencies: [
      ...['envoy/extensions/common/ratelimit/v3/ratelimit.proto', 'envoy/config/core/v3/base.proto'],
      ...['google/protobuf/duration.proto', 'google/protobuf/struct.proto'],
    ],
    messages: [
      {
        name: 'RateLimitRequest',
        fields: ['domain = 1 string', `descriptors = 2 repeated ${common}`, 'hits_addend = 3 uint32'],
      },
      {
        name: 'RateLimitResponse',
        fields: [
          ...[`overall_code = 1 enum ${rateLimit}.Code`, `statuses = 2 repeated ${rateLimit}.DescriptorStatus`],
          ...[`response_headers_to_add = 3 repeated ${core}.HeaderValue`, `dynamic_metadata = 6 ${struct}`],
        ],
        enums: [{ name: 'Code', values: ['UNKNOWN', 'OK', 'OVER_LIMIT'] }],
        messages: [
          {
            name: 'RateLimit',
            fields: ['requests_per_unit = 1 uint32', `unit = 2 enum ${rateLimit}.RateLimit.Unit`, 'name = 3 string'],
            enums: [{ name: 'Unit', values: ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'] }],
          },
          {
            name: 'DescriptorStatus',
            fields: [
              ...[`code = 1 enum ${rateLimit}.Code`, `current_limit = 2 ${rateLimit}.RateLimit`],
              ...['limit_remaining = 3 uint32', 'duration_until_reset = 4 .google.protobuf.Duration'],
            ],
          },
        ],
      },
    ],
    services: [
      {
        name: 'RateLimitService',
        methods: [`ShouldRateLimit .envoy.service.ratelimit.v3.RateLimitRequest ${rateLimit}`],
      },
    ],
  },
  {
    ...{ name: 'envoy/service/auth/v3/external_auth.proto', package: 'envoy.service.auth.v3' },
    dependencies: ['envoy/config/core/v3/base.proto', 'google/protobuf/struct.proto'],
    messages: [
      { name: 'CheckRequest', fields: [`attributes = 1 ${auth}.AttributeContext`] },
      {
        name: 'AttributeContext',
        fields: [
          ...[`source = 1 ${auth}.AttributeContext.Peer`, `request = 4 ${auth}.AttributeContext.Request`],
          `context_extensions = 10 repeated ${auth}.AttributeContext.ContextExtensionsEntry`,
        ],
        messages: [
          { name: 'Peer', fields: [`address = 1 ${core}.Address`] },
          { name: 'Request', fields: [`http = 2 ${auth}.AttributeContext.HttpRequest`] },
          {
            name: 'HttpRequest',
            fields: [
              ...['method = 2 string', `headers = 3 repeated ${auth}.AttributeContext.HttpRequest.HeadersEntry`],
              ...['path = 4 string', 'host = 5 string', `header_map = 13 ${core}.HeaderMap`],
            ],
            messages: [textMap('HeadersEntry')],
          },
          textMap('ContextExtensionsEntry'),
        ],
      },
      { name: 'Status', fields: ['code = 1 int32', 'message = 2 string'] },
      { name: 'HttpStatus', fields: ['code = 1 int32'] },
      {
        name: 'DeniedHttpResponse',
        fields: [`status = 1 ${auth}.HttpStatus`, `headers = 2 repeated ${core}.HeaderValueOption`, 'body = 3 string'],
      },
      { name: 'OkHttpResponse', fields: [`response_headers_to_add = 6 repeated ${core}.HeaderValueOption`] },
      {
        name: 'CheckResponse',
        fields: [
          ...[`status = 1 ${auth}.Status`, `denied_response = 2 ${auth}.DeniedHttpResponse`],
          ...[`ok_response = 3 ${auth}.OkHttpResponse`, `dynamic_metadata = 4 ${struct}`],
        ],
      },
    ],
    services: [{ name: 'Authorization', methods: [`Check ${auth}.CheckRequest ${auth}.CheckResponse`] }],
  },
]

const health: ProtoFile = {
  ...{ name: 'grpc/health/v1/health.proto', package: 'grpc.health.v1' },
  messages: [
    { name: 'HealthCheckRequest', fields: ['service = 1 string'] },
    {
      name: 'HealthCheckResponse',
      fields: ['status = 1 enum .grpc.health.v1.HealthCheckResponse.ServingStatus'],
      enums: [{ name: 'ServingStatus', values: ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'] }],
    },
  ],
  services: [
    {
      name: 'Health',
      methods: [
        'Check .grpc.health.v1.HealthCheckRequest .grpc.health.v1.HealthCheckResponse',
        'Watch .grpc.health.v1.HealthCheckRequest stream .grpc.health.v1.HealthCheckResponse',
      ],
    },
  ],
}

/** The files that the reflection service reports of the services here; of Envoy's messages, the fields that are read or written. */
export const protoFiles: readonly ProtoFile[] = [...wellKnown, ...envoy, health]
