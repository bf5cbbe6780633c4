"""Small models of transformers, of random weights, to be exported."""

# The tables have a model a line.
# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def make_transformers() -> dict[str, Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]]]:
    """Small models of transformers by name, each with the arguments that it is exported with."""
    import transformers as t

    ids = torch.randint(3, 90, (2, 12))
    mask = torch.ones(2, 12, dtype=torch.int64)
    small = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "vocab_size": 99,
    }
    pixels = torch.randn(2, 3, 32, 32)
    vision = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "image_size": 32,
        "patch_size": 8,
    }
    bert = {"input_ids": ids, "attention_mask": mask}

    def text(kind: str, config: str, **changes: Any) -> Callable[[], Any]:
        def make() -> Any:
            model = getattr(t, kind)(getattr(t, config)(**{**small, **changes}))
            return model, (), dict(bert)

        return make

    def causal(kind: str, config: str, **changes: Any) -> Callable[[], Any]:
        def make() -> Any:
            model = getattr(t, kind)(getattr(t, config)(**{**small, **changes}))
            return model, (), {**bert, "use_cache": False}

        return make

    def image(kind: str, config: str, **changes: Any) -> Callable[[], Any]:
        def make() -> Any:
            # In some configurations the one is another name of the other, which is given.
            given = {k: v for k, v in vision.items() if k != "num_attention_heads" or "num_heads" not in changes}
            return getattr(t, kind)(getattr(t, config)(**{**given, **changes})), (pixels,), {}

        return make

    def t5() -> Any:
        config = t.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
        return (
            t.T5ForConditionalGeneration(config),
            (),
            {"input_ids": ids, "decoder_input_ids": ids, "use_cache": False},
        )

    def bart() -> Any:
        config = t.BartConfig(
            vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64,
        )  # fmt: skip
        return t.BartModel(config), (), {"input_ids": ids, "use_cache": False}

    def whisper() -> Any:
        config = t.WhisperConfig(
            vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=50, num_mel_bins=16,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        )  # fmt: skip
        return t.WhisperModel(config), (torch.randn(1, 16, 100),), {"decoder_input_ids": ids[:1], "use_cache": False}

    def clip() -> Any:
        config = t.CLIPConfig(
            text_config={**small, "max_position_embeddings": 64, "projection_dim": 16, "eos_token_id": 2},
            vision_config={**vision, "projection_dim": 16}, projection_dim=16,
        )  # fmt: skip
        return t.CLIPModel(config), (), {**bert, "pixel_values": pixels}

    def wav2vec() -> Any:
        config = t.Wav2Vec2Config(
            **small, conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2,
            num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
        )  # fmt: skip
        return t.Wav2Vec2Model(config), (torch.randn(1, 1000),), {}

    def build(kind: str, config: str, arguments: dict[str, Any], **settings: Any) -> Callable[[], Any]:
        """A model of a configuration given whole."""
        return lambda: (getattr(t, kind)(getattr(t, config)(**settings)), (), arguments)

    pair = {"input_ids": ids, "decoder_input_ids": ids, "use_cache": False}
    seq2seq = {
        "vocab_size": 99, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
    }  # fmt: skip
    seen64 = {"pixel_values": torch.randn(2, 3, 64, 64)}
    heard = {"input_values": torch.randn(1, 1000)}
    conv = {
        "conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2,
        "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
    }  # fmt: skip
    experts = {"num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2}
    stages = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}

    def detr() -> Any:
        backbone = t.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], out_features=["stage4"]
        )
        config = t.DetrConfig(
            use_timm_backbone=False, backbone_config=backbone, backbone=None, use_pretrained_backbone=False, d_model=32, encoder_layers=2,
            decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
            decoder_ffn_dim=64, num_queries=10,
        )  # fmt: skip
        return t.DetrForObjectDetection(config), (), seen64

    gpt2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99, "n_positions": 64}
    grouped = {"num_key_value_heads": 2, "max_position_embeddings": 64}
    return {
        "bert": text("BertModel", "BertConfig"),
        "roberta": text("RobertaModel", "RobertaConfig"),
        "electra": text("ElectraModel", "ElectraConfig", embedding_size=16),
        "albert": text("AlbertModel", "AlbertConfig", embedding_size=16),
        "mobilebert": text("MobileBertModel", "MobileBertConfig", embedding_size=32, intra_bottleneck_size=32),
        "deberta_v2": text("DebertaV2Model", "DebertaV2Config", relative_attention=True, pos_att_type=["p2c", "c2p"]),
        "distilbert": text("DistilBertModel", "DistilBertConfig", dim=32, n_layers=2, n_heads=4, hidden_dim=64),
        "mpnet": text("MPNetModel", "MPNetConfig"),
        "modernbert": text("ModernBertModel", "ModernBertConfig", pad_token_id=0),
        "gpt2": causal("GPT2LMHeadModel", "GPT2Config", **gpt2),
        "gpt_neox": causal("GPTNeoXForCausalLM", "GPTNeoXConfig"),
        "opt": causal("OPTForCausalLM", "OPTConfig", ffn_dim=64, word_embed_proj_dim=32, max_position_embeddings=64),
        "llama": causal("LlamaForCausalLM", "LlamaConfig", **grouped),
        "mistral": causal("MistralForCausalLM", "MistralConfig", **grouped),
        "qwen2": causal("Qwen2ForCausalLM", "Qwen2Config", **grouped),
        "qwen3": causal("Qwen3ForCausalLM", "Qwen3Config", head_dim=8, **grouped),
        "gemma": causal("GemmaForCausalLM", "GemmaConfig", head_dim=8, **grouped),
        "phi": causal("PhiForCausalLM", "PhiConfig", **grouped),
        "falcon": causal("FalconForCausalLM", "FalconConfig"),
        "mamba": causal("MambaForCausalLM", "MambaConfig", state_size=8),
        "bloom": causal("BloomForCausalLM", "BloomConfig", n_layer=2, n_head=4),
        "t5": t5, "bart": bart, "whisper": whisper, "clip": clip, "wav2vec2": wav2vec,
        "vit": image("ViTModel", "ViTConfig"),
        "deit": image("DeiTModel", "DeiTConfig"),
        "beit": image("BeitModel", "BeitConfig"),
        "dinov2": image("Dinov2Model", "Dinov2Config"),
        "swin": image("SwinModel", "SwinConfig", embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, patch_size=2),
        "segformer": image("SegformerModel", "SegformerConfig", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 4]),
        "convnext": image("ConvNextModel", "ConvNextConfig", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], patch_size=4),
        "resnet": image("ResNetModel", "ResNetConfig", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], embedding_size=8),
        "detr": detr,
        "camembert": text("CamembertForMaskedLM", "CamembertConfig"),
        "xlm_roberta": text("XLMRobertaForSequenceClassification", "XLMRobertaConfig"),
        "bert_qa": text("BertForQuestionAnswering", "BertConfig"),
        "bert_classify": text("BertForSequenceClassification", "BertConfig"),
        "distilbert_classify": text("DistilBertForSequenceClassification", "DistilBertConfig", dim=32, n_layers=2, n_heads=4, hidden_dim=64),
        "deberta": text("DebertaModel", "DebertaConfig", relative_attention=True, pos_att_type=["p2c", "c2p"]),
        "convbert": text("ConvBertModel", "ConvBertConfig", embedding_size=32),
        "squeezebert": text("SqueezeBertModel", "SqueezeBertConfig", embedding_size=32),
        "funnel": text("FunnelModel", "FunnelConfig", block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64),
        "layoutlm": text("LayoutLMModel", "LayoutLMConfig"),
        "xlnet": text("XLNetModel", "XLNetConfig", d_model=32, n_layer=2, n_head=4, d_inner=64),
        "xlm": text("XLMModel", "XLMConfig", emb_dim=32, n_layers=2, n_heads=4),
        "ernie": text("ErnieModel", "ErnieConfig"),
        "nystromformer": text("NystromformerModel", "NystromformerConfig", num_landmarks=4, segment_means_seq_len=12),
        "longformer": text("LongformerModel", "LongformerConfig", attention_window=8),
        "big_bird": text("BigBirdModel", "BigBirdConfig", attention_type="original_full"),
        "fnet": lambda: (t.FNetModel(t.FNetConfig(**small)), (), {"input_ids": ids}),
        "gptj": causal("GPTJForCausalLM", "GPTJConfig", n_embd=32, n_layer=2, n_head=4, rotary_dim=4),
        "gpt_neo": causal("GPTNeoForCausalLM", "GPTNeoConfig", num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]]),
        "codegen": causal("CodeGenForCausalLM", "CodeGenConfig", n_embd=32, n_layer=2, n_head=4, rotary_dim=4),
        "gpt_bigcode": causal("GPTBigCodeForCausalLM", "GPTBigCodeConfig", n_embd=32, n_layer=2, n_head=4),
        "phi3": causal("Phi3ForCausalLM", "Phi3Config", pad_token_id=0, **grouped),
        "gemma2": causal("Gemma2ForCausalLM", "Gemma2Config", head_dim=8, **grouped),
        "gemma3": causal("Gemma3ForCausalLM", "Gemma3TextConfig", head_dim=8, **grouped),
        "stablelm": causal("StableLmForCausalLM", "StableLmConfig", **grouped),
        "olmo2": causal("Olmo2ForCausalLM", "Olmo2Config", **grouped),
        "granite": causal("GraniteForCausalLM", "GraniteConfig", **grouped),
        "starcoder2": causal("Starcoder2ForCausalLM", "Starcoder2Config", **grouped),
        "cohere": causal("CohereForCausalLM", "CohereConfig", **grouped),
        "glm": causal("GlmForCausalLM", "GlmConfig", head_dim=8, pad_token_id=0, **grouped),
        "smollm3": causal("SmolLM3ForCausalLM", "SmolLM3Config", pad_token_id=0, **grouped),
        "mpt": causal("MptForCausalLM", "MptConfig", d_model=32, n_heads=4, n_layers=2, max_seq_len=64),
        "mixtral": causal("MixtralForCausalLM", "MixtralConfig", **experts),
        "qwen2_moe": causal("Qwen2MoeForCausalLM", "Qwen2MoeConfig", moe_intermediate_size=32, shared_expert_intermediate_size=32, num_experts=4, num_experts_per_tok=2, num_key_value_heads=2),
        "rwkv": lambda: (t.RwkvForCausalLM(t.RwkvConfig(**small, attention_hidden_size=32)), (), {"input_ids": ids, "use_cache": False}),
        "mamba2": causal("Mamba2ForCausalLM", "Mamba2Config", num_heads=8, head_dim=8, state_size=8, n_groups=1, chunk_size=4),
        "recurrent_gemma": causal("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", num_key_value_heads=1, num_hidden_layers=3),
        "flan_t5": lambda: (t.T5ForConditionalGeneration(t.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, feed_forward_proj="gated-gelu")), (), pair),
        "mbart": build("MBartModel", "MBartConfig", {"input_ids": ids, "decoder_input_ids": ids, "use_cache": False}, **seq2seq),
        "marian": build("MarianMTModel", "MarianConfig", pair, pad_token_id=0, decoder_start_token_id=0, **seq2seq),
        "pegasus": build("PegasusModel", "PegasusConfig", pair, **seq2seq),
        "m2m_100": build("M2M100Model", "M2M100Config", pair, **seq2seq),
        "blenderbot": build("BlenderbotModel", "BlenderbotConfig", pair, **seq2seq),
        "whisper_encoder": lambda: (t.WhisperModel(t.WhisperConfig(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=50, num_mel_bins=16, pad_token_id=0, bos_token_id=1, eos_token_id=2)).get_encoder(), (torch.randn(1, 16, 100),), {}),
        "hubert": build("HubertModel", "HubertConfig", heard, **small, **conv),
        "wavlm": build("WavLMModel", "WavLMConfig", heard, **small, **conv),
        "wav2vec2_ctc": build("Wav2Vec2ForCTC", "Wav2Vec2Config", heard, **small, **conv),
        "data2vec_audio": build("Data2VecAudioModel", "Data2VecAudioConfig", heard, **{**small, **conv, "num_conv_pos_embeddings": 3}),
        "ast": build("ASTModel", "ASTConfig", {"input_values": torch.randn(1, 64, 16)}, **{k: v for k, v in vision.items() if k != "image_size"}, max_length=64, num_mel_bins=16),
        "speech_to_text": build("Speech2TextModel", "Speech2TextConfig", {"input_features": torch.randn(1, 40, 16), "decoder_input_ids": ids[:1], "use_cache": False}, vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, input_feat_per_channel=16, conv_channels=32),
        "siglip": lambda: (t.SiglipModel(t.SiglipConfig(text_config={**small, "max_position_embeddings": 64, "projection_size": 32}, vision_config=vision)), (), {**bert, "pixel_values": pixels}),
        "blip": lambda: (t.BlipForConditionalGeneration(t.BlipConfig(text_config={**small, "encoder_hidden_size": 32, "max_position_embeddings": 64}, vision_config=vision)), (), {"pixel_values": pixels, "input_ids": ids}),
        "vilt": build("ViltModel", "ViltConfig", {**bert, "pixel_values": pixels}, **{**vision, **small}),
        "vit_mae": image("ViTMAEModel", "ViTMAEConfig"),
        "vit_classify": image("ViTForImageClassification", "ViTConfig"),
        "dinov2_registers": image("Dinov2WithRegistersModel", "Dinov2WithRegistersConfig"),
        "dpt": build("DPTForDepthEstimation", "DPTConfig", seen64, **{**vision, "image_size": 64, "num_hidden_layers": 4}, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16, is_hybrid=False),
        "depth_anything": lambda: (t.DepthAnythingForDepthEstimation(t.DepthAnythingConfig(backbone_config=t.Dinov2Config(**{**vision, "image_size": 56, "patch_size": 14, "num_hidden_layers": 4}, out_indices=[1, 2, 3, 4], reshape_hidden_states=False), patch_size=14, reassemble_hidden_size=32, neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16, head_hidden_size=8)), (), {"pixel_values": torch.randn(1, 3, 56, 56)}),
        "glpn": build("GLPNForDepthEstimation", "GLPNConfig", seen64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 4], decoder_hidden_size=16),
        "segformer_segment": build("SegformerForSemanticSegmentation", "SegformerConfig", seen64, **stages, num_attention_heads=[1, 2, 4, 4], decoder_hidden_size=16),
        "yolos": build("YolosForObjectDetection", "YolosConfig", seen64, **{**vision, "image_size": [64, 64]}, num_detection_tokens=10),
        "pvt": build("PvtModel", "PvtConfig", seen64, image_size=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 4]),
        "pvt_v2": build("PvtV2Model", "PvtV2Config", seen64, image_size=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 4]),
        "poolformer": build("PoolFormerModel", "PoolFormerConfig", seen64, **stages),
        "swinv2": image("Swinv2Model", "Swinv2Config", embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, patch_size=2),
        "convnextv2": build("ConvNextV2Model", "ConvNextV2Config", {"pixel_values": pixels}, **stages, patch_size=4, image_size=32),
        "regnet": build("RegNetModel", "RegNetConfig", seen64, embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], groups_width=8),
        "mobilenet_v1": build("MobileNetV1Model", "MobileNetV1Config", seen64, image_size=64),
        "mobilenet_v2": build("MobileNetV2ForImageClassification", "MobileNetV2Config", seen64, image_size=64),
        "mobilevitv2": build("MobileViTV2Model", "MobileViTV2Config", seen64, image_size=64),
        "efficientnet": build("EfficientNetModel", "EfficientNetConfig", seen64, image_size=64),
        "levit": build("LevitModel", "LevitConfig", {"pixel_values": torch.randn(2, 3, 224, 224)}),
        "focalnet": build("FocalNetModel", "FocalNetConfig", seen64, image_size=64, embed_dim=16, depths=[1, 1, 1, 1]),
        "bit": build("BitModel", "BitConfig", seen64, embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_groups=4),
        "cvt": build("CvtModel", "CvtConfig", seen64),
        "upernet": lambda: (t.UperNetForSemanticSegmentation(t.UperNetConfig(backbone_config=t.ConvNextConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], out_features=["stage1", "stage2", "stage3", "stage4"]), hidden_size=16, auxiliary_channels=16, auxiliary_in_channels=24)), (), seen64),
        "videomae": build("VideoMAEModel", "VideoMAEConfig", {"pixel_values": torch.randn(1, 4, 3, 32, 32)}, **vision, num_frames=4),
        "timesformer": build("TimesformerModel", "TimesformerConfig", {"pixel_values": torch.randn(1, 4, 3, 32, 32)}, **vision, num_frames=4),
        "sam": lambda: (t.SamModel(t.SamConfig(vision_config={**vision, "image_size": 64, "output_channels": 32, "num_pos_feats": 16, "window_size": 4, "global_attn_indexes": [1], "mlp_dim": 64}, prompt_encoder_config={"hidden_size": 32, "image_size": 64, "patch_size": 8}, mask_decoder_config={"hidden_size": 32, "mlp_dim": 64, "num_attention_heads": 4, "iou_head_hidden_dim": 32})), (), {"pixel_values": torch.randn(1, 3, 64, 64), "input_points": torch.rand(1, 1, 2, 2) * 64}),
        "rt_detr": lambda: (t.RTDetrForObjectDetection(t.RTDetrConfig(backbone_config=t.RTDetrResNetConfig(embedding_size=8, hidden_sizes=[16, 32, 32, 64], depths=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"]), encoder_hidden_dim=32, encoder_in_channels=[32, 32, 64], d_model=32, num_queries=20, decoder_layers=2, decoder_attention_heads=4, encoder_attention_heads=4, decoder_in_channels=[32, 32, 32], encoder_ffn_dim=64, decoder_ffn_dim=64, num_denoising=0)), (), seen64),
        "mask2former_swin": lambda: (t.MaskFormerForInstanceSegmentation(t.MaskFormerConfig(backbone_config=t.SwinConfig(image_size=64, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 2, 4, 4], window_size=4, out_features=["stage1", "stage2", "stage3", "stage4"]), decoder_config=t.DetrConfig(d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_queries=10), fpn_feature_size=32, mask_feature_size=32)), (), seen64),
        "patchtst": build("PatchTSTForPrediction", "PatchTSTConfig", {"past_values": torch.randn(2, 32, 3)}, num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, d_model=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, prediction_length=4),
        "patchtsmixer": build("PatchTSMixerForPrediction", "PatchTSMixerConfig", {"past_values": torch.randn(2, 32, 3)}, num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, d_model=16, num_layers=2, prediction_length=4),
        "encodec": lambda: (t.EncodecModel(t.EncodecConfig(num_filters=4, hidden_size=16, codebook_size=32, num_residual_layers=1, num_lstm_layers=1)), (), {"input_values": torch.randn(1, 1, 3200)}),
        "vits": lambda: (t.VitsModel(t.VitsConfig(vocab_size=99, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, ffn_dim=64)).text_encoder, (), {"input_ids": ids, "padding_mask": mask[..., None].float()}),
        "gpt2_cache": lambda: (t.GPT2LMHeadModel(t.GPT2Config(**{**small, **gpt2})), (), {"input_ids": ids}),
        "mobilevit": image("MobileViTModel", "MobileViTConfig", image_size=64, patch_size=2),
    }  # fmt: skip
