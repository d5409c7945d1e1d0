"""Every problem the service can answer with: slug, status, and title in English and Chinese. Slugs never change."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemKind:
    """One row of the error catalogue."""

    slug: str
    status: int
    title_en: str
    title_zh: str
    type_uri: str | None = None

    def title(self, language: str) -> str:
        return self.title_zh if language.startswith("zh") else self.title_en


_ROWS: tuple[tuple[str, int, str, str], ...] = (
    ("malformed-json", 400, "The body is not valid JSON", "请求体不是有效的 JSON"),
    ("unknown-parameter", 400, "A query parameter is not known", "存在未知的查询参数"),
    ("invalid-cursor", 400, "The cursor is not valid", "分页游标无效"),
    ("cursor-filter-mismatch", 400, "The filters changed while paging", "翻页过程中筛选条件发生了变化"),
    ("idempotency-key-missing", 400, "An Idempotency-Key is required", "缺少 Idempotency-Key 请求头"),
    ("idempotency-key-invalid", 400, "The Idempotency-Key is malformed", "Idempotency-Key 格式不正确"),
    ("unauthenticated", 401, "No valid credential was given", "未提供有效的凭证"),
    ("insufficient-scope", 403, "The credential lacks a scope", "凭证缺少所需的权限范围"),
    ("self-approval", 403, "Nobody approves their own revision", "不能批准自己编写的版本"),
    ("not-found", 404, "There is no such resource", "找不到该资源"),
    ("method-not-allowed", 405, "The method is not allowed here", "此处不允许使用该方法"),
    ("not-acceptable", 406, "No such representation", "没有所要求的表示形式"),
    (
        "idempotency-in-progress",
        409,
        "The first request with this key is still running",
        "使用该键的首个请求仍在处理中",
    ),
    ("invalid-transition", 409, "The action is not possible in this state", "当前状态下不能执行该操作"),
    ("revision-immutable", 409, "The revision can no longer be changed", "该版本已不可更改"),
    ("draft-exists", 409, "There is a draft already", "已存在草稿版本"),
    ("quote-expired", 409, "This quote is no longer valid", "该报价已过有效期"),
    ("superseded", 409, "A newer revision took the place of this one", "该版本已被更新的版本取代"),
    ("content-mismatch", 409, "The content is not what you accepted", "内容与您所接受的不一致"),
    ("stale-price", 409, "A price is older than allowed", "价格数据超过允许的时效"),
    ("engine-unavailable", 409, "The pinned engine cannot be run here", "无法运行所锁定的引擎版本"),
    ("external-ref-conflict", 409, "The external reference is in use", "外部引用号已被使用"),
    ("conflict", 409, "The resource is in another state", "资源状态冲突"),
    ("gone", 410, "The resource is gone", "该资源已不存在"),
    ("precondition-failed", 412, "It changed since you read it", "自您读取后内容已发生变化"),
    ("payload-too-large", 413, "The request is too large", "请求内容过大"),
    ("uri-too-long", 414, "The address is too long", "请求地址过长"),
    ("unsupported-media-type", 415, "The content type is not accepted", "不支持该内容类型"),
    ("validation-failed", 422, "The request does not fit the schema", "请求内容不符合规范"),
    ("money-not-string", 422, "Amounts of money are strings", "金额必须以字符串表示"),
    ("money-format", 422, "The amount is not a plain decimal", "金额格式不正确"),
    ("currency-unknown", 422, "The currency is not known", "未知的货币代码"),
    ("currency-mismatch", 422, "The currencies do not match", "货币不一致"),
    ("idempotency-key-reused", 422, "The key was used for another request", "该键已用于另一个请求"),
    ("incomplete-pricing", 422, "A line has no price", "存在没有价格的行项目"),
    ("ambiguous-price", 422, "Several prices match", "存在多个匹配的价格"),
    ("infeasible-spec", 422, "The job cannot run like this", "该任务配置不可行"),
    ("unknown-catalog-revision", 422, "There is no such catalog revision", "没有该目录版本"),
    ("as-of-out-of-range", 422, "The catalog does not reach that date", "目录数据不覆盖该日期"),
    ("fx-unavailable", 422, "An exchange rate is missing", "缺少汇率"),
    ("tax-undetermined", 422, "The tax cannot be determined", "无法确定税额"),
    ("export-not-representable", 422, "The format cannot hold this quote", "该格式无法表示此报价"),
    ("webhook-url-forbidden", 422, "Webhooks may not be sent there", "不允许向该地址发送 Webhook"),
    ("precondition-required", 428, "If-Match is required", "缺少 If-Match 请求头"),
    ("quota-exceeded", 429, "The quota is used up", "已超出配额"),
    ("internal", 500, "Something went wrong on our side", "服务内部错误"),
    ("price-source-unavailable", 503, "A price source cannot be reached", "价格来源不可用"),
    ("overloaded", 503, "The service is busy", "服务繁忙"),
    ("maintenance", 503, "The service is not ready", "服务暂不可用"),
    ("calculation-timeout", 504, "The calculation took too long", "计算超时"),
)
_IANA = "https://iana.org/assignments/http-problem-types#"
_REGISTERED_TYPES = {
    "quota-exceeded": f"{_IANA}quota-exceeded",
    "overloaded": f"{_IANA}temporary-reduced-capacity",
    "maintenance": f"{_IANA}temporary-reduced-capacity",
}

CATALOGUE: dict[str, ProblemKind] = {
    slug: ProblemKind(slug=slug, status=status, title_en=en, title_zh=zh, type_uri=_REGISTERED_TYPES.get(slug))
    for slug, status, en, zh in _ROWS
}
